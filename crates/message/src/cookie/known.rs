//! Names of cookies that a visitor has on every site alike, and on which no page depends: one list, for
//! the `safe` profile and all presets.
//!
//! A name is here if it is set for every visitor, by a script or by a machine on the way, and if the
//! application that makes the pages does not read it. So some names that look alike are not here:
//! consent that PHP reads (`wp_consent_*`, `wpl_user_preference`), languages and currencies
//! (`pll_language`, `wcml_client_currency`), experiments that servers take part in (`mbox`,
//! `optimizelyEndUserId`, `ph_*`), names that mean something else elsewhere (`route`, `visitor_id`).

/// The reader of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBy {
    /// Scripts in the browser, and nobody else.
    Script,
    /// A machine on the way, a balancer or a guard against robots. It may stand before this cache or
    /// behind it, where it sends a visitor to the server that has their session.
    Way,
}

/// A well-known cookie.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name; one that ends in `*` stands for all names that begin so.
    pub name: &'static str,
    /// Its reader.
    pub by: ReadBy,
    /// Its owner.
    pub of: &'static str,
    /// Where its owner speaks of it, without `https://`.
    pub source: &'static str,
}

/// Known cookies. Sorted without the stars, and no starred name begins another one: so the last name
/// not after the one looked for is the only one that can match.
pub const KNOWN: &[Known] = &[
    row("ABTasty", ReadBy::Script, "AB Tasty", "docs.abtasty.com"),
    row("ABTastySession", ReadBy::Script, "AB Tasty", "docs.abtasty.com"),
    row("AKA_A2", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row(
        "AMCVS_*",
        ReadBy::Script,
        "Adobe Analytics",
        "experienceleague.adobe.com/docs/core-services/interface/data-collection/cookies",
    ),
    row(
        "AMCV_*",
        ReadBy::Script,
        "Adobe Analytics",
        "experienceleague.adobe.com/docs/core-services/interface/data-collection/cookies",
    ),
    row("AMP_*", ReadBy::Script, "Amplitude", "amplitude.com/docs/sdks/analytics/browser"),
    row(
        "ARRAffinity*",
        ReadBy::Way,
        "Azure App Service",
        "learn.microsoft.com/azure/app-service/reference-app-settings",
    ),
    row(
        "AWSALB*",
        ReadBy::Way,
        "AWS Elastic Load Balancing",
        "docs.aws.amazon.com/elasticloadbalancing/latest/application/sticky-sessions.html",
    ),
    row(
        "AWSELB*",
        ReadBy::Way,
        "AWS Elastic Load Balancing",
        "docs.aws.amazon.com/elasticloadbalancing/latest/application/sticky-sessions.html",
    ),
    row(
        "ApplicationGatewayAffinity*",
        ReadBy::Way,
        "Azure Application Gateway",
        "learn.microsoft.com/azure/application-gateway/configuration-http-settings",
    ),
    row("BIGipServer*", ReadBy::Way, "F5 BIG-IP", "my.f5.com/manage/s/article/K6917"),
    row("CookieConsent", ReadBy::Script, "Cookiebot", "cookiebot.com"),
    row("CookieControl", ReadBy::Script, "Civic", "civicuk.com/cookie-control/documentation"),
    row("CookieLawInfoConsent", ReadBy::Script, "CookieYes", "cookieyes.com"),
    row(
        "FPAU",
        ReadBy::Script,
        "Google Tag Manager (server container)",
        "developers.google.com/tag-platform/tag-manager/server-side",
    ),
    row(
        "FPGCLAW",
        ReadBy::Script,
        "Google Tag Manager (server container)",
        "developers.google.com/tag-platform/tag-manager/server-side",
    ),
    row(
        "FPID",
        ReadBy::Script,
        "Google Tag Manager (server container)",
        "developers.google.com/tag-platform/tag-manager/server-side",
    ),
    row(
        "FPLC",
        ReadBy::Script,
        "Google Tag Manager (server container)",
        "developers.google.com/tag-platform/tag-manager/server-side",
    ),
    row(
        "GCILB",
        ReadBy::Way,
        "Google Cloud Load Balancing",
        "cloud.google.com/load-balancing/docs/https",
    ),
    row(
        "GCLB",
        ReadBy::Way,
        "Google Cloud Load Balancing",
        "cloud.google.com/load-balancing/docs/https",
    ),
    row(
        "INGRESSCOOKIE",
        ReadBy::Way,
        "Ingress-NGINX",
        "kubernetes.github.io/ingress-nginx/examples/affinity/cookie",
    ),
    row("LPSID-*", ReadBy::Script, "LivePerson", "knowledge.liveperson.com"),
    row("LPVID", ReadBy::Script, "LivePerson", "knowledge.liveperson.com"),
    row(
        "MUID",
        ReadBy::Script,
        "Microsoft Clarity",
        "learn.microsoft.com/clarity/setup-and-installation/cookie-list",
    ),
    row("NSC_*", ReadBy::Way, "NetScaler", "docs.netscaler.com"),
    row("OptanonAlertBoxClosed", ReadBy::Script, "OneTrust", "my.onetrust.com"),
    row("OptanonConsent", ReadBy::Script, "OneTrust", "my.onetrust.com"),
    row("SERVERID", ReadBy::Way, "HAProxy", "docs.haproxy.org, cookie"),
    row("TawkConnectionTime", ReadBy::Script, "tawk.to", "help.tawk.to"),
    row("__adroll*", ReadBy::Script, "AdRoll", "help.adroll.com"),
    row("__ar_v4", ReadBy::Script, "AdRoll", "help.adroll.com"),
    row(
        "__cf_bm",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row(
        "__cflb",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row(
        "__cfruid",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row(
        "__cfseq-*",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row(
        "__cfwaitingroom",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row("__gads", ReadBy::Script, "Google Ads", "business.safety.google/adscookies"),
    row("__gpi", ReadBy::Script, "Google Ads", "business.safety.google/adscookies"),
    row("__gsas", ReadBy::Script, "Google Ads", "business.safety.google/adscookies"),
    row(
        "__hssc",
        ReadBy::Script,
        "HubSpot",
        "knowledge.hubspot.com/privacy-and-consent/what-cookies-does-hubspot-set-in-a-visitor-s-browser",
    ),
    row(
        "__hssrc",
        ReadBy::Script,
        "HubSpot",
        "knowledge.hubspot.com/privacy-and-consent/what-cookies-does-hubspot-set-in-a-visitor-s-browser",
    ),
    row(
        "__hstc",
        ReadBy::Script,
        "HubSpot",
        "knowledge.hubspot.com/privacy-and-consent/what-cookies-does-hubspot-set-in-a-visitor-s-browser",
    ),
    row("__kla_id", ReadBy::Script, "Klaviyo", "help.klaviyo.com/hc/en-us/articles/360034666712"),
    row("__lc_cid", ReadBy::Script, "LiveChat", "livechat.com/help"),
    row("__lc_cst", ReadBy::Script, "LiveChat", "livechat.com/help"),
    row("__qca", ReadBy::Script, "Quantcast", "quantcast.com/privacy"),
    row("__ss", ReadBy::Script, "SharpSpring", "sharpspring.com"),
    row("__ss_referrer", ReadBy::Script, "SharpSpring", "sharpspring.com"),
    row("__ss_tk", ReadBy::Script, "SharpSpring", "sharpspring.com"),
    row(
        "__stripe_mid",
        ReadBy::Script,
        "Stripe, on every page that has its script",
        "docs.stripe.com/disputes/prevention/advanced-fraud-detection",
    ),
    row(
        "__stripe_sid",
        ReadBy::Script,
        "Stripe, on every page that has its script",
        "docs.stripe.com/disputes/prevention/advanced-fraud-detection",
    ),
    row(
        "__utm*",
        ReadBy::Script,
        "Google Analytics (classic)",
        "developers.google.com/analytics/devguides/collection/analyticsjs/cookie-usage",
    ),
    row(
        "__zlcmid",
        ReadBy::Script,
        "Zendesk",
        "support.zendesk.com/hc/en-us/articles/360022367393",
    ),
    row("_abck", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("_cb", ReadBy::Script, "Chartbeat", "help.chartbeat.com"),
    row("_cb_*", ReadBy::Script, "Chartbeat", "help.chartbeat.com"),
    row("_ce.*", ReadBy::Script, "Crazy Egg", "support.crazyegg.com"),
    row(
        "_cfuvid",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row("_chartbeat*", ReadBy::Script, "Chartbeat", "help.chartbeat.com"),
    row(
        "_clck",
        ReadBy::Script,
        "Microsoft Clarity",
        "learn.microsoft.com/clarity/setup-and-installation/cookie-list",
    ),
    row(
        "_clsk",
        ReadBy::Script,
        "Microsoft Clarity",
        "learn.microsoft.com/clarity/setup-and-installation/cookie-list",
    ),
    row("_conv_*", ReadBy::Script, "Convert", "support.convert.com"),
    row("_dc_gtm_*", ReadBy::Script, "Google Tag Manager", "support.google.com/tagmanager"),
    row(
        "_derived_epik",
        ReadBy::Script,
        "Pinterest",
        "help.pinterest.com/en/business/article/pinterest-tag-parameters-and-cookies",
    ),
    row(
        "_fbc",
        ReadBy::Script,
        "Meta",
        "developers.facebook.com/docs/marketing-api/conversions-api/parameters/fbp-and-fbc",
    ),
    row(
        "_fbp",
        ReadBy::Script,
        "Meta",
        "developers.facebook.com/docs/marketing-api/conversions-api/parameters/fbp-and-fbc",
    ),
    row("_fw_crm_v", ReadBy::Script, "Freshchat", "support.freshchat.com"),
    row(
        "_ga",
        ReadBy::Script,
        "Google Analytics",
        "developers.google.com/analytics/devguides/collection/gtagjs/cookie-usage",
    ),
    row(
        "_ga_*",
        ReadBy::Script,
        "Google Analytics",
        "developers.google.com/analytics/devguides/collection/gtagjs/cookie-usage",
    ),
    row("_gac_*", ReadBy::Script, "Google Ads", "business.safety.google/adscookies"),
    row("_gaexp", ReadBy::Script, "Google Optimize", "support.google.com/optimize"),
    row("_gaexp_rc", ReadBy::Script, "Google Optimize", "support.google.com/optimize"),
    row(
        "_gat*",
        ReadBy::Script,
        "Google Analytics",
        "developers.google.com/analytics/devguides/collection/gtagjs/cookie-usage",
    ),
    row("_gcl_*", ReadBy::Script, "Google Ads", "business.safety.google/adscookies"),
    row(
        "_gid",
        ReadBy::Script,
        "Google Analytics",
        "developers.google.com/analytics/devguides/collection/gtagjs/cookie-usage",
    ),
    row("_hj*", ReadBy::Script, "Hotjar", "help.hotjar.com/hc/en-us/articles/115011789248"),
    row("_hp2_*", ReadBy::Script, "Heap", "help.heap.io"),
    row("_iub_cs-*", ReadBy::Script, "iubenda", "iubenda.com/en/help"),
    row("_lfa", ReadBy::Script, "Leadfeeder", "help.leadfeeder.com"),
    row("_lo_uid", ReadBy::Script, "Lucky Orange", "help.luckyorange.com"),
    row("_lo_v", ReadBy::Script, "Lucky Orange", "help.luckyorange.com"),
    row("_lorid", ReadBy::Script, "Lucky Orange", "help.luckyorange.com"),
    row("_mkto_trk", ReadBy::Script, "Marketo", "experienceleague.adobe.com/docs/marketo"),
    row("_ok", ReadBy::Script, "Olark", "olark.com/help/cookies"),
    row("_okbk", ReadBy::Script, "Olark", "olark.com/help/cookies"),
    row("_okdetect", ReadBy::Script, "Olark", "olark.com/help/cookies"),
    row("_oklv", ReadBy::Script, "Olark", "olark.com/help/cookies"),
    row("_opt_*", ReadBy::Script, "Google Optimize", "support.google.com/optimize"),
    row(
        "_pin_unauth",
        ReadBy::Script,
        "Pinterest",
        "help.pinterest.com/en/business/article/pinterest-tag-parameters-and-cookies",
    ),
    row(
        "_pinterest_ct_*",
        ReadBy::Script,
        "Pinterest",
        "help.pinterest.com/en/business/article/pinterest-tag-parameters-and-cookies",
    ),
    row("_pk_*", ReadBy::Script, "Matomo", "matomo.org/faq/general/faq_146"),
    row("_px2", ReadBy::Way, "HUMAN (PerimeterX)", "docs.humansecurity.com"),
    row("_px3", ReadBy::Way, "HUMAN (PerimeterX)", "docs.humansecurity.com"),
    row("_pxde", ReadBy::Way, "HUMAN (PerimeterX)", "docs.humansecurity.com"),
    row("_pxhd", ReadBy::Way, "HUMAN (PerimeterX)", "docs.humansecurity.com"),
    row("_pxvid", ReadBy::Way, "HUMAN (PerimeterX)", "docs.humansecurity.com"),
    row("_rdt_uuid", ReadBy::Script, "Reddit", "business.reddithelp.com"),
    row("_scid*", ReadBy::Script, "Snapchat", "businesshelp.snapchat.com"),
    row("_scor_uid", ReadBy::Script, "comScore", "scorecardresearch.com"),
    row(
        "_sp_id.*",
        ReadBy::Script,
        "Snowplow",
        "docs.snowplow.io/docs/sources/web-trackers/cookies-and-local-storage",
    ),
    row(
        "_sp_ses.*",
        ReadBy::Script,
        "Snowplow",
        "docs.snowplow.io/docs/sources/web-trackers/cookies-and-local-storage",
    ),
    row(
        "_tt_enable_cookie",
        ReadBy::Script,
        "TikTok",
        "ads.tiktok.com/help/article/using-cookies-with-tiktok-pixel",
    ),
    row(
        "_ttp",
        ReadBy::Script,
        "TikTok",
        "ads.tiktok.com/help/article/using-cookies-with-tiktok-pixel",
    ),
    row("_twpid", ReadBy::Script, "X", "help.x.com"),
    row("_uet*", ReadBy::Script, "Microsoft Advertising", "help.ads.microsoft.com"),
    row("_vis_opt_*", ReadBy::Script, "VWO", "help.vwo.com/hc/en-us/articles/360033819014"),
    row("_vwo_*", ReadBy::Script, "VWO", "help.vwo.com/hc/en-us/articles/360033819014"),
    row(
        "_ym_*",
        ReadBy::Script,
        "Yandex Metrica",
        "yandex.com/support/metrica/general/cookie-usage.html",
    ),
    row("acw_tc", ReadBy::Way, "Alibaba Cloud", "alibabacloud.com/help"),
    row(
        "addtl_consent",
        ReadBy::Script,
        "IAB Transparency and Consent Framework",
        "github.com/InteractiveAdvertisingBureau/GDPR-Transparency-and-Consent-Framework",
    ),
    row(
        "ajs_anonymous_id",
        ReadBy::Script,
        "Segment",
        "segment.com/docs/connections/sources/catalog/libraries/website/javascript/cookies",
    ),
    row(
        "ajs_group_id",
        ReadBy::Script,
        "Segment",
        "segment.com/docs/connections/sources/catalog/libraries/website/javascript/cookies",
    ),
    row(
        "ajs_user_id",
        ReadBy::Script,
        "Segment",
        "segment.com/docs/connections/sources/catalog/libraries/website/javascript/cookies",
    ),
    row("ak_bmsc", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("amplitude_id*", ReadBy::Script, "Amplitude", "amplitude.com/docs/sdks/analytics/browser"),
    row("axeptio_*", ReadBy::Script, "Axeptio", "support.axeptio.eu"),
    row("bm_mi", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("bm_s", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("bm_so", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("bm_ss", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("bm_sv", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("bm_sz", ReadBy::Way, "Akamai", "techdocs.akamai.com"),
    row("borlabs-cookie", ReadBy::Script, "Borlabs Cookie", "borlabs.io"),
    row(
        "cc_cookie",
        ReadBy::Script,
        "Cookie Consent (orestbida)",
        "github.com/orestbida/cookieconsent",
    ),
    row(
        "cf_clearance",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row(
        "cf_use_ob",
        ReadBy::Way,
        "Cloudflare",
        "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
    ),
    row("citrix_ns_id*", ReadBy::Way, "NetScaler", "docs.netscaler.com"),
    row("cmapi_*", ReadBy::Script, "TrustArc", "trustarc.com"),
    row("cmplz_*", ReadBy::Script, "Complianz", "complianz.io"),
    row("cookie_consent", ReadBy::Script, "consent banners", "cookiedatabase.org"),
    row(
        "cookie_notice_accepted",
        ReadBy::Script,
        "Cookie Notice",
        "wordpress.org/plugins/cookie-notice",
    ),
    row(
        "cookieconsent*",
        ReadBy::Script,
        "Cookie Consent (Osano, orestbida)",
        "github.com/orestbida/cookieconsent",
    ),
    row("cookiefirst-*", ReadBy::Script, "CookieFirst", "support.cookiefirst.com"),
    row("cookielawinfo-*", ReadBy::Script, "CookieYes", "cookieyes.com"),
    row("cookieyes-consent", ReadBy::Script, "CookieYes", "cookieyes.com"),
    row("crisp-client*", ReadBy::Script, "Crisp", "help.crisp.chat"),
    row("cto_bidid", ReadBy::Script, "Criteo", "criteo.com/privacy"),
    row("cto_bundle", ReadBy::Script, "Criteo", "criteo.com/privacy"),
    row("datadome", ReadBy::Way, "DataDome", "docs.datadome.co"),
    row("didomi_token", ReadBy::Script, "Didomi", "developers.didomi.io"),
    row("drift_aid", ReadBy::Script, "Drift", "gethelp.drift.com"),
    row("drift_campaign_refresh", ReadBy::Script, "Drift", "gethelp.drift.com"),
    row("driftt_aid", ReadBy::Script, "Drift", "gethelp.drift.com"),
    row(
        "euconsent",
        ReadBy::Script,
        "IAB Transparency and Consent Framework",
        "github.com/InteractiveAdvertisingBureau/GDPR-Transparency-and-Consent-Framework",
    ),
    row(
        "euconsent-v2",
        ReadBy::Script,
        "IAB Transparency and Consent Framework",
        "github.com/InteractiveAdvertisingBureau/GDPR-Transparency-and-Consent-Framework",
    ),
    row("fs_lua", ReadBy::Script, "FullStory", "help.fullstory.com/hc/en-us/articles/360020829513"),
    row("fs_uid", ReadBy::Script, "FullStory", "help.fullstory.com/hc/en-us/articles/360020829513"),
    row(
        "has_js",
        ReadBy::Script,
        "Drupal 7: a sign of scripting",
        "api.drupal.org/api/drupal/misc%21drupal.js/7.x",
    ),
    row("hblid", ReadBy::Script, "Olark", "olark.com/help/cookies"),
    row("hu-consent", ReadBy::Script, "Cookie Notice", "wordpress.org/plugins/cookie-notice"),
    row(
        "hubspotutk",
        ReadBy::Script,
        "HubSpot",
        "knowledge.hubspot.com/privacy-and-consent/what-cookies-does-hubspot-set-in-a-visitor-s-browser",
    ),
    row("incap_ses_*", ReadBy::Way, "Imperva", "docs.imperva.com"),
    row("intercom-*", ReadBy::Script, "Intercom", "intercom.com/help/en/articles/2361922"),
    row("kameleoonVisitorCode", ReadBy::Script, "Kameleoon", "developers.kameleoon.com"),
    row("klaro", ReadBy::Script, "Klaro", "klaro.org"),
    row("li_fat_id", ReadBy::Script, "LinkedIn", "linkedin.com/legal/l/cookie-table"),
    row("ln_or", ReadBy::Script, "LinkedIn", "linkedin.com/legal/l/cookie-table"),
    row(
        "messagesUtk",
        ReadBy::Script,
        "HubSpot",
        "knowledge.hubspot.com/privacy-and-consent/what-cookies-does-hubspot-set-in-a-visitor-s-browser",
    ),
    row("mf_user", ReadBy::Script, "Mouseflow", "help.mouseflow.com"),
    row(
        "moove_gdpr_popup",
        ReadBy::Script,
        "GDPR Cookie Compliance (Moove)",
        "wordpress.org/plugins/gdpr-cookie-compliance",
    ),
    row(
        "mp_*",
        ReadBy::Script,
        "Mixpanel",
        "docs.mixpanel.com/docs/tracking-methods/sdks/javascript",
    ),
    row("mtm_consent*", ReadBy::Script, "Matomo", "matomo.org/faq/general/faq_146"),
    row("nlbi_*", ReadBy::Way, "Imperva", "docs.imperva.com"),
    row("notice_behavior", ReadBy::Script, "TrustArc", "trustarc.com"),
    row("notice_gdpr_prefs", ReadBy::Script, "TrustArc", "trustarc.com"),
    row("notice_preferences", ReadBy::Script, "TrustArc", "trustarc.com"),
    row("olfsk", ReadBy::Script, "Olark", "olark.com/help/cookies"),
    row("osano_consentmanager*", ReadBy::Script, "Osano", "docs.osano.com"),
    row("pxcts", ReadBy::Way, "HUMAN (PerimeterX)", "docs.humansecurity.com"),
    row("real_cookie_banner*", ReadBy::Script, "Real Cookie Banner", "devowl.io"),
    row(
        "s_cc",
        ReadBy::Script,
        "Adobe Analytics",
        "experienceleague.adobe.com/docs/core-services/interface/data-collection/cookies",
    ),
    row(
        "s_fid",
        ReadBy::Script,
        "Adobe Analytics",
        "experienceleague.adobe.com/docs/core-services/interface/data-collection/cookies",
    ),
    row(
        "s_sq",
        ReadBy::Script,
        "Adobe Analytics",
        "experienceleague.adobe.com/docs/core-services/interface/data-collection/cookies",
    ),
    row(
        "s_vi",
        ReadBy::Script,
        "Adobe Analytics",
        "experienceleague.adobe.com/docs/core-services/interface/data-collection/cookies",
    ),
    row(
        "sbjs_*",
        ReadBy::Script,
        "Sourcebuster: order attribution of WooCommerce, by script, since 8.5",
        "woocommerce.com/document/order-attribution-tracking",
    ),
    row(
        "srv_id",
        ReadBy::Way,
        "nginx, sticky cookie",
        "nginx.org/en/docs/http/ngx_http_upstream_module.html#sticky",
    ),
    row("ssupp.*", ReadBy::Script, "Smartsupp", "help.smartsupp.com"),
    row("tarteaucitron", ReadBy::Script, "tarteaucitron.js", "github.com/AmauriC/tarteaucitron.js"),
    row("tawkUUID", ReadBy::Script, "tawk.to", "help.tawk.to"),
    row("tk_ai", ReadBy::Script, "Jetpack and WooCommerce, Tracks", "jetpack.com/support/cookies"),
    row("tk_lr", ReadBy::Script, "Jetpack and WooCommerce, Tracks", "jetpack.com/support/cookies"),
    row("tk_or", ReadBy::Script, "Jetpack and WooCommerce, Tracks", "jetpack.com/support/cookies"),
    row("tk_qs", ReadBy::Script, "Jetpack and WooCommerce, Tracks", "jetpack.com/support/cookies"),
    row("tk_r3d", ReadBy::Script, "Jetpack and WooCommerce, Tracks", "jetpack.com/support/cookies"),
    row("tk_tc", ReadBy::Script, "Jetpack and WooCommerce, Tracks", "jetpack.com/support/cookies"),
    row(
        "ttcsid*",
        ReadBy::Script,
        "TikTok",
        "ads.tiktok.com/help/article/using-cookies-with-tiktok-pixel",
    ),
    row("twk_*", ReadBy::Script, "tawk.to", "help.tawk.to"),
    row(
        "usprivacy",
        ReadBy::Script,
        "IAB Transparency and Consent Framework",
        "github.com/InteractiveAdvertisingBureau/GDPR-Transparency-and-Consent-Framework",
    ),
    row("viewed_cookie_policy", ReadBy::Script, "CookieYes", "cookieyes.com"),
    row("visid_incap_*", ReadBy::Way, "Imperva", "docs.imperva.com"),
    row("wcsid", ReadBy::Script, "Olark", "olark.com/help/cookies"),
];

const fn row(name: &'static str, by: ReadBy, of: &'static str, source: &'static str) -> Known {
    Known { name, by, of, source }
}

/// The reader of the cookie of this name, if it is known. Names match exactly: cookies are
/// case-sensitive.
pub fn reader(name: &[u8]) -> Option<ReadBy> {
    let after = KNOWN.partition_point(|known| unstarred(known.name) <= name);
    let known = KNOWN[after.checked_sub(1)?];
    let stem = unstarred(known.name);
    let is_it = name == stem || (stem.len() < known.name.len() && name.starts_with(stem));
    is_it.then_some(known.by)
}

fn unstarred(known: &str) -> &[u8] {
    known.strip_suffix('*').unwrap_or(known).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_that_looking_up_needs() {
        let stems: Vec<_> = KNOWN.iter().map(|known| unstarred(known.name)).collect();
        assert!(stems.windows(2).all(|pair| pair[0] < pair[1]));
        for starred in KNOWN.iter().filter(|known| known.name.ends_with('*')) {
            let stem = unstarred(starred.name);
            let within = stems.iter().filter(|other| other.starts_with(stem)).count();
            assert_eq!(within, 1, "{} begins another one", starred.name);
        }
        assert!(KNOWN.iter().all(|known| !known.of.is_empty() && known.source.contains('.')));
    }

    #[test]
    fn every_row_is_found_and_what_follows_a_star_too() {
        for known in KNOWN {
            assert_eq!(reader(unstarred(known.name)), Some(known.by), "{}", known.name);
            let longer = [unstarred(known.name), b"~x"].concat();
            let found = reader(&longer).is_some();
            assert_eq!(found, known.name.ends_with('*'), "{}", known.name);
        }
    }

    #[test]
    fn what_an_application_reads_is_not_known() {
        for name in [
            "PHPSESSID",
            "wordpress_logged_in_x",
            "wp_woocommerce_session_x",
            "woocommerce_cart_hash",
            "wp_consent_marketing",
            "pll_language",
            "SESSabc",
            "X-Magento-Vary",
            "form_key",
            "JSESSIONID",
            "csrftoken",
            "session",
            "lang",
            "currency",
            "cart",
            "",
        ] {
            assert_eq!(reader(name.as_bytes()), None, "{name}");
        }
    }
}
