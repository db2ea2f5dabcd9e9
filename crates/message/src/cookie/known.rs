//! Names of cookies that a visitor has on every site alike, and on which no page depends: one list,
//! for the `safe` profile and all presets.
//!
//! A name is here if it is set for every visitor, by a script or by a machine on the way, and if
//! the application that makes the pages does not read it. So some names that look alike are not
//! here:
//! consent that servers read (`wp_consent_*`, `wpl_user_preference`; `cookie_notice_accepted` and
//! `hu-consent` of Cookie Notice, `viewed_cookie_policy` and `cookielawinfo-*` of Cookie Law Info,
//! `_iub_cs-*` of iubenda, whose plugins make the page by them; `CookieConsent`, which Cookiebot
//! tells servers to read), languages and currencies (`pll_language`, `wcml_client_currency`),
//! experiments that servers take part in (`mbox`, `optimizelyEndUserId`, `ph_*`,
//! `kameleoonVisitorCode`), logins that a balancer keeps (`AWSELBAuthSessionCookie-*` and
//! `AWSALBAuthNonce` of AWS; `NSC_TMAS` and `NSC_AAAC` of NetScaler, so none that begins with
//! `NSC_`), names that mean something else elsewhere (`route`, `visitor_id`, `cookie_consent`,
//! `cookieconsent_status`, `CookieControl`; `mp_*`, with which Mixpanel's begin).

/// The reader of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBy {
    /// Scripts in the browser, and nobody else.
    Script,
    /// A machine on the way, a balancer, a guard against robots, or a server of tags. It may stand
    /// before this cache or behind it, where it sends a visitor to the server that has their
    /// session.
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

/// Known cookies. Sorted without the stars, and no starred name begins another one: so the last
/// name not after the one looked for is the only one that can match.
pub const KNOWN: &[Known] = &[
    row("ABTasty", ReadBy::Script, AB_TASTY),
    row("ABTastySession", ReadBy::Script, AB_TASTY),
    row("AKA_A2", ReadBy::Way, AKAMAI),
    row("AMCVS_*", ReadBy::Script, ADOBE_ANALYTICS),
    row("AMCV_*", ReadBy::Script, ADOBE_ANALYTICS_SDK),
    row("AMP_*", ReadBy::Script, AMPLITUDE),
    row("ARRAffinity*", ReadBy::Way, AZURE_APP_SERVICE),
    row("ASLBSA", ReadBy::Way, AZURE_FRONT_DOOR),
    row("ASLBSACORS", ReadBy::Way, AZURE_FRONT_DOOR),
    row("AWSALB", ReadBy::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBAPP*", ReadBy::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBCORS", ReadBy::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBTG", ReadBy::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBTGCORS", ReadBy::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSELB", ReadBy::Way, AWS_ELASTIC_LOAD_BALANCING_HTML),
    row("AWSELBCORS", ReadBy::Way, AWS_ELASTIC_LOAD_BALANCING_HTML),
    row("ApplicationGatewayAffinity*", ReadBy::Way, AZURE_APPLICATION_GATEWAY),
    row("BIGipServer*", ReadBy::Way, F5_BIG_IP),
    row("FPAU", ReadBy::Way, GOOGLE_TAG_MANAGER_SERVER),
    row("FPGCLAW", ReadBy::Way, GOOGLE_TAG_MANAGER_SERVER),
    row("FPID", ReadBy::Way, GOOGLE_TAG_MANAGER_SERVER),
    row("FPLC", ReadBy::Script, GOOGLE_TAG_MANAGER_SERVER),
    row("GCILB", ReadBy::Way, GOOGLE_CLOUD_LOAD_BALANCING),
    row("GCLB", ReadBy::Way, GOOGLE_CLOUD_LOAD_BALANCING),
    row("INGRESSCOOKIE", ReadBy::Way, INGRESS_NGINX),
    row("LPSID-*", ReadBy::Script, LIVEPERSON),
    row("LPVID", ReadBy::Script, LIVEPERSON),
    row("OTAdditionalConsentString", ReadBy::Script, ONETRUST),
    row("OptanonAlertBoxClosed", ReadBy::Script, ONETRUST),
    row("OptanonConsent", ReadBy::Script, ONETRUST),
    row("SERVERID", ReadBy::Way, HAPROXY),
    row("TawkConnectionTime", ReadBy::Script, TAWK_TO),
    row("__adroll*", ReadBy::Script, ADROLL),
    row("__ar_v4", ReadBy::Script, ADROLL),
    row("__cf_bm", ReadBy::Way, CLOUDFLARE),
    row("__cflb", ReadBy::Way, CLOUDFLARE),
    row("__cfruid", ReadBy::Way, CLOUDFLARE),
    row("__cfseq*", ReadBy::Way, CLOUDFLARE),
    row("__cfwaitingroom", ReadBy::Way, CLOUDFLARE),
    row("__eoi", ReadBy::Script, GOOGLE_ADS),
    row("__gads", ReadBy::Script, GOOGLE_ADS),
    row("__gpi", ReadBy::Script, GOOGLE_ADS),
    row("__gpi_optout", ReadBy::Script, GOOGLE_ADS),
    row("__gsas", ReadBy::Script, GOOGLE_ADS),
    row("__hs_cookie_cat_pref", ReadBy::Script, HUBSPOT),
    row("__hs_do_not_track", ReadBy::Script, HUBSPOT),
    row("__hs_gpc_banner_dismiss", ReadBy::Script, HUBSPOT),
    row("__hs_initial_opt_in", ReadBy::Script, HUBSPOT),
    row("__hs_opt_out", ReadBy::Script, HUBSPOT),
    row("__hssc", ReadBy::Script, HUBSPOT),
    row("__hssrc", ReadBy::Script, HUBSPOT),
    row("__hstc", ReadBy::Script, HUBSPOT),
    row("__kla_id", ReadBy::Script, KLAVIYO),
    row("__lc_cid", ReadBy::Script, LIVECHAT),
    row("__lc_cst", ReadBy::Script, LIVECHAT),
    row("__pxvid", ReadBy::Way, HUMAN),
    row("__qca", ReadBy::Script, QUANTCAST),
    row("__ss", ReadBy::Script, SHARPSPRING),
    row("__ss_referrer", ReadBy::Script, SHARPSPRING),
    row("__ss_tk", ReadBy::Script, SHARPSPRING),
    row("__stripe_mid", ReadBy::Script, STRIPE),
    row("__stripe_sid", ReadBy::Script, STRIPE),
    row("__utm*", ReadBy::Script, GOOGLE_ANALYTICS_CLASSIC),
    row("__zlcmid", ReadBy::Script, ZENDESK),
    row("__zlcprivacy", ReadBy::Script, ZENDESK),
    row("_abck", ReadBy::Way, AKAMAI),
    row("_cb", ReadBy::Script, CHARTBEAT),
    row("_cb_*", ReadBy::Script, CHARTBEAT),
    row("_ce.*", ReadBy::Script, CRAZY_EGG),
    row("_cfuvid", ReadBy::Way, CLOUDFLARE),
    row("_chartbeat*", ReadBy::Script, CHARTBEAT),
    row("_clck", ReadBy::Script, MICROSOFT_CLARITY),
    row("_clsk", ReadBy::Script, MICROSOFT_CLARITY),
    row("_conv_*", ReadBy::Script, CONVERT),
    row("_cs_c", ReadBy::Script, CONTENTSQUARE),
    row("_cs_cvars", ReadBy::Script, CONTENTSQUARE),
    row("_cs_ep", ReadBy::Script, CONTENTSQUARE),
    row("_cs_ex", ReadBy::Script, CONTENTSQUARE),
    row("_cs_i", ReadBy::Script, CONTENTSQUARE),
    row("_cs_id", ReadBy::Script, CONTENTSQUARE),
    row("_cs_mk_aa", ReadBy::Script, CONTENTSQUARE),
    row("_cs_mk_ga", ReadBy::Script, CONTENTSQUARE),
    row("_cs_optout", ReadBy::Script, CONTENTSQUARE),
    row("_cs_s", ReadBy::Script, CONTENTSQUARE),
    row("_cs_s_ctx", ReadBy::Script, CONTENTSQUARE),
    row("_dc_gtm_*", ReadBy::Script, GOOGLE_TAG_MANAGER),
    row("_derived_epik", ReadBy::Script, PINTEREST),
    row("_epik", ReadBy::Script, PINTEREST),
    row("_fbc", ReadBy::Script, META),
    row("_fbp", ReadBy::Script, META),
    row("_fw_crm_v", ReadBy::Script, FRESHCHAT),
    row("_ga", ReadBy::Script, GOOGLE_ANALYTICS),
    row("_ga_*", ReadBy::Script, GOOGLE_ANALYTICS),
    row("_gac_*", ReadBy::Script, GOOGLE_ADS),
    row("_gat", ReadBy::Script, GOOGLE_ANALYTICS),
    row("_gat_*", ReadBy::Script, GOOGLE_ANALYTICS),
    row("_gcl_*", ReadBy::Script, GOOGLE_ADS),
    row("_gid", ReadBy::Script, GOOGLE_ANALYTICS),
    row("_hj*", ReadBy::Script, HOTJAR),
    row("_hp2_*", ReadBy::Script, HEAP),
    row("_hp5_*", ReadBy::Script, HEAP),
    row("_lfa", ReadBy::Script, LEADFEEDER),
    row("_lo_uid", ReadBy::Script, LUCKY_ORANGE),
    row("_lo_v", ReadBy::Script, LUCKY_ORANGE),
    row("_lorid", ReadBy::Script, LUCKY_ORANGE),
    row("_mkto_trk", ReadBy::Script, MARKETO),
    row("_ok", ReadBy::Script, OLARK),
    row("_okac", ReadBy::Script, OLARK),
    row("_okbk", ReadBy::Script, OLARK),
    row("_okck", ReadBy::Script, OLARK),
    row("_okdetect", ReadBy::Script, OLARK),
    row("_okgid", ReadBy::Script, OLARK),
    row("_okla", ReadBy::Script, OLARK),
    row("_oklv", ReadBy::Script, OLARK),
    row("_parsely_*", ReadBy::Script, PARSE_LY),
    row("_pcid", ReadBy::Script, PIANO_ANALYTICS),
    row("_pctx", ReadBy::Script, PIANO_ANALYTICS),
    row("_pin_unauth", ReadBy::Script, PINTEREST),
    row("_pinterest_ct*", ReadBy::Script, PINTEREST),
    row("_pk_*", ReadBy::Script, MATOMO),
    row("_pprv", ReadBy::Script, PIANO_ANALYTICS),
    row("_px", ReadBy::Way, HUMAN),
    row("_px2", ReadBy::Way, HUMAN),
    row("_px3", ReadBy::Way, HUMAN),
    row("_pxde", ReadBy::Way, HUMAN),
    row("_pxff_*", ReadBy::Way, HUMAN),
    row("_pxhd", ReadBy::Way, HUMAN),
    row("_pxmvid", ReadBy::Way, HUMAN),
    row("_pxvid", ReadBy::Way, HUMAN),
    row("_rdt_uuid", ReadBy::Script, REDDIT),
    row("_scid*", ReadBy::Script, SNAPCHAT),
    row("_scor_uid", ReadBy::Script, COMSCORE),
    row("_sp_id.*", ReadBy::Script, SNOWPLOW),
    row("_sp_ses.*", ReadBy::Script, SNOWPLOW),
    row("_t_tests", ReadBy::Script, CHARTBEAT),
    row("_tawkuuid", ReadBy::Script, TAWK_TO),
    row("_tt_enable_cookie", ReadBy::Script, TIKTOK),
    row("_ttp", ReadBy::Script, TIKTOK),
    row("_twpid", ReadBy::Script, X),
    row("_uet*", ReadBy::Script, MICROSOFT_ADVERTISING),
    row("_v__cb_cp", ReadBy::Script, CHARTBEAT),
    row("_v__chartbeat3", ReadBy::Script, CHARTBEAT),
    row("_vis_opt_*", ReadBy::Script, VWO),
    row("_vwo_*", ReadBy::Script, VWO),
    row("_ym_*", ReadBy::Script, YANDEX_METRICA),
    row("acw_tc", ReadBy::Way, ALIBABA_CLOUD),
    row("addtl_consent", ReadBy::Script, GOOGLE),
    row("ajs_anonymous_id", ReadBy::Script, SEGMENT),
    row("ajs_group_id", ReadBy::Script, SEGMENT),
    row("ajs_user_id", ReadBy::Script, SEGMENT),
    row("ak_bmsc", ReadBy::Way, AKAMAI),
    row("amplitude_id*", ReadBy::Script, AMPLITUDE_SDK),
    row("aws-waf-token", ReadBy::Way, AWS_WAF),
    row("axeptio_*", ReadBy::Script, AXEPTIO),
    row("bm_mi", ReadBy::Way, AKAMAI),
    row("bm_s", ReadBy::Way, AKAMAI),
    row("bm_so", ReadBy::Way, AKAMAI),
    row("bm_ss", ReadBy::Way, AKAMAI),
    row("bm_sv", ReadBy::Way, AKAMAI),
    row("bm_sz", ReadBy::Way, AKAMAI),
    row("borlabs-cookie", ReadBy::Script, BORLABS_COOKIE),
    row("cc_cookie", ReadBy::Script, COOKIE_CONSENT),
    row("cf_chl_rc_*", ReadBy::Way, CLOUDFLARE),
    row("cf_clearance", ReadBy::Way, CLOUDFLARE),
    row("cf_ob_info", ReadBy::Way, CLOUDFLARE),
    row("cf_use_ob", ReadBy::Way, CLOUDFLARE),
    row("citrix_ns_id*", ReadBy::Way, NETSCALER),
    row("cmapi_*", ReadBy::Script, TRUSTARC),
    row("cmplz_*", ReadBy::Script, COMPLIANZ),
    row("cookiefirst-*", ReadBy::Script, COOKIEFIRST),
    row("cookieyes-consent", ReadBy::Script, COOKIEYES),
    row("crisp-client*", ReadBy::Script, CRISP),
    row("cto_bidid", ReadBy::Script, CRITEO),
    row("cto_bundle", ReadBy::Script, CRITEO),
    row("datadome", ReadBy::Way, DATADOME),
    row("didomi_dcs", ReadBy::Script, DIDOMI),
    row("didomi_token", ReadBy::Script, DIDOMI),
    row("drift_aid", ReadBy::Script, DRIFT),
    row("drift_campaign_refresh", ReadBy::Script, DRIFT),
    row("driftt_aid", ReadBy::Script, DRIFT),
    row("euconsent", ReadBy::Script, IAB_TRANSPARENCY_AND_CONSENT_FRAMEWORK),
    row("euconsent-v2", ReadBy::Script, IAB_TRANSPARENCY_AND_CONSENT_FRAMEWORK),
    row("eupubconsent-v2", ReadBy::Script, ONETRUST),
    row("fs_cid", ReadBy::Script, FULLSTORY),
    row("fs_lua", ReadBy::Script, FULLSTORY),
    row("fs_uid", ReadBy::Script, FULLSTORY),
    row("has_js", ReadBy::Script, DRUPAL_7),
    row("hblid", ReadBy::Script, OLARK),
    row("hs-messages-*", ReadBy::Script, HUBSPOT),
    row("hubspotutk", ReadBy::Script, HUBSPOT),
    row("incap_ses_*", ReadBy::Way, IMPERVA),
    row("intercom-*", ReadBy::Script, INTERCOM),
    row("klaro", ReadBy::Script, KLARO),
    row("li_fat_id", ReadBy::Script, LINKEDIN),
    row("ln_or", ReadBy::Script, LINKEDIN),
    row("lo-opt-out", ReadBy::Script, LUCKY_ORANGE),
    row("lo-uid", ReadBy::Script, LUCKY_ORANGE),
    row("lo-visits", ReadBy::Script, LUCKY_ORANGE),
    row("messagesUtk", ReadBy::Script, HUBSPOT),
    row("mf_user", ReadBy::Script, MOUSEFLOW),
    row("moove_gdpr_popup", ReadBy::Script, GDPR_COOKIE_COMPLIANCE),
    row("mtm_consent*", ReadBy::Script, MATOMO),
    row("mtm_cookie_consent", ReadBy::Script, MATOMO),
    row("nlbi_*", ReadBy::Way, IMPERVA),
    row("notice_behavior", ReadBy::Script, TRUSTARC),
    row("notice_gdpr_prefs", ReadBy::Script, TRUSTARC),
    row("notice_preferences", ReadBy::Script, TRUSTARC),
    row("olfsk", ReadBy::Script, OLARK),
    row("osano_consentmanager*", ReadBy::Script, OSANO),
    row("pa_privacy", ReadBy::Script, PIANO_ANALYTICS),
    row("pa_vid", ReadBy::Script, PIANO_ANALYTICS),
    row("pxcts", ReadBy::Way, HUMAN),
    row("real_cookie_banner*", ReadBy::Script, REAL_COOKIE_BANNER),
    row("s_cc", ReadBy::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_ecid", ReadBy::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_fid", ReadBy::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_sq", ReadBy::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_vi", ReadBy::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("sbjs_*", ReadBy::Script, SOURCEBUSTER),
    row("srv_id", ReadBy::Way, NGINX),
    row("ssupp.*", ReadBy::Script, SMARTSUPP),
    row("tarteaucitron", ReadBy::Script, TARTEAUCITRON_JS),
    row("tawkUUID", ReadBy::Script, TAWK_TO),
    row("tawk_uuid_*", ReadBy::Script, TAWK_TO),
    row("tk_ai", ReadBy::Script, JETPACK_AND_WOOCOMMERCE),
    row("tk_lr", ReadBy::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_or", ReadBy::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_qs", ReadBy::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_r3d", ReadBy::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_tc", ReadBy::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("ttcsid*", ReadBy::Script, TIKTOK),
    row("twk_*", ReadBy::Script, TAWK_TO),
    row("usprivacy", ReadBy::Script, IAB_US_PRIVACY),
    row("visid_incap_*", ReadBy::Way, IMPERVA),
    row("wcsid", ReadBy::Script, OLARK),
];

const fn row(name: &'static str, by: ReadBy, (of, source): Owner) -> Known {
    Known { name, by, of, source }
}

/// An owner, and where it speaks of its cookies.
type Owner = (&'static str, &'static str);

const AB_TASTY: Owner = ("AB Tasty", "docs.abtasty.com/client-side/tag/tag-cookies");
const ADOBE_ANALYTICS: Owner = (
    "Adobe Analytics",
    "experienceleague.adobe.com/en/docs/core-services/interface/data-collection/cookies",
);
const ADOBE_ANALYTICS_ANALYTICS: Owner = (
    "Adobe Analytics",
    "experienceleague.adobe.com/en/docs/core-services/interface/data-collection/cookies/analytics",
);
const ADOBE_ANALYTICS_SDK: Owner = (
    "Adobe Analytics",
    "experienceleague.adobe.com/en/docs/core-services/interface/data-collection/cookies/web-sdk",
);
const ADROLL: Owner = ("AdRoll", "help.adroll.com");
const AKAMAI: Owner = ("Akamai", "techdocs.akamai.com");
const ALIBABA_CLOUD: Owner = ("Alibaba Cloud", "alibabacloud.com/help");
const AMPLITUDE: Owner =
    ("Amplitude", "amplitude.com/docs/sdks/analytics/browser/cookies-and-consent-management");
const AMPLITUDE_SDK: Owner = (
    "Amplitude",
    "amplitude.com/docs/sdks/analytics/browser/cookies-and-consent-management-javascript-sdk",
);
const AWS_ELASTIC_LOAD_BALANCING: Owner = (
    "AWS Elastic Load Balancing",
    "docs.aws.amazon.com/elasticloadbalancing/latest/application/sticky-sessions.html",
);
const AWS_ELASTIC_LOAD_BALANCING_HTML: Owner = (
    "AWS Elastic Load Balancing",
    "docs.aws.amazon.com/elasticloadbalancing/latest/classic/elb-sticky-sessions.html",
);
const AWS_WAF: Owner = ("AWS WAF", "docs.aws.amazon.com/waf/latest/developerguide/waf-tokens.html");
const AXEPTIO: Owner =
    ("Axeptio", "support.axeptio.eu/en/articles/274085-what-cookies-does-axeptio-set");
const AZURE_APPLICATION_GATEWAY: Owner = (
    "Azure Application Gateway",
    "learn.microsoft.com/azure/application-gateway/configuration-http-settings",
);
const AZURE_APP_SERVICE: Owner =
    ("Azure App Service", "learn.microsoft.com/azure/app-service/reference-app-settings");
const AZURE_FRONT_DOOR: Owner =
    ("Azure Front Door", "learn.microsoft.com/azure/frontdoor/routing-methods");
const BORLABS_COOKIE: Owner = ("Borlabs Cookie", "borlabs.io");
const CHARTBEAT: Owner =
    ("Chartbeat", "help.chartbeat.com/hc/en-us/articles/360044659014-Chartbeat-Cookies");
const CLOUDFLARE: Owner = (
    "Cloudflare",
    "developers.cloudflare.com/fundamentals/reference/policies-compliances/cloudflare-cookies",
);
const COMPLIANZ: Owner = ("Complianz", "complianz.io/does-complianz-work-with-caching-plugins");
const COMSCORE: Owner = ("comScore", "scorecardresearch.com");
const CONTENTSQUARE: Owner = ("Contentsquare", "docs.contentsquare.com/en/web/cookies");
const CONVERT: Owner = ("Convert", "docs.developers.convert.com/v1.0-web/docs/cookies");
const COOKIEFIRST: Owner = ("CookieFirst", "support.cookiefirst.com");
const COOKIEYES: Owner = ("CookieYes", "cookieyes.com");
const COOKIE_CONSENT: Owner = ("Cookie Consent (orestbida)", "github.com/orestbida/cookieconsent");
const CRAZY_EGG: Owner = ("Crazy Egg", "support.crazyegg.com");
const CRISP: Owner = ("Crisp", "help.crisp.chat/en/article/crisp-cookie-policy-1147xor");
const CRITEO: Owner = ("Criteo", "criteo.com/privacy");
const DATADOME: Owner = ("DataDome", "docs.datadome.co/docs/cookie-session-storage");
const DIDOMI: Owner = ("Didomi", "developers.didomi.io/cmp/web-sdk/consent-notice/cookies");
const DRIFT: Owner = ("Drift", "gethelp.drift.com");
const DRUPAL_7: Owner =
    ("Drupal 7: a sign of scripting", "api.drupal.org/api/drupal/misc%21drupal.js/7.x");
const F5_BIG_IP: Owner = ("F5 BIG-IP", "my.f5.com/manage/s/article/K6917");
const FRESHCHAT: Owner = ("Freshchat", "support.freshchat.com");
const FULLSTORY: Owner = ("FullStory", "help.fullstory.com/hc/en-us/articles/360020829513");
const GDPR_COOKIE_COMPLIANCE: Owner =
    ("GDPR Cookie Compliance (Moove)", "wordpress.org/plugins/gdpr-cookie-compliance");
const GOOGLE: Owner = ("Google, additional consent", "support.google.com/admanager/answer/9681920");
const GOOGLE_ADS: Owner = ("Google Ads", "business.safety.google/adscookies");
const GOOGLE_ANALYTICS: Owner = (
    "Google Analytics",
    "developers.google.com/analytics/devguides/collection/gtagjs/cookie-usage",
);
const GOOGLE_ANALYTICS_CLASSIC: Owner = (
    "Google Analytics (classic)",
    "developers.google.com/analytics/devguides/collection/analyticsjs/cookie-usage",
);
const GOOGLE_CLOUD_LOAD_BALANCING: Owner = (
    "Google Cloud Load Balancing",
    "cloud.google.com/load-balancing/docs/https/request-distribution",
);
const GOOGLE_TAG_MANAGER: Owner = ("Google Tag Manager", "support.google.com/tagmanager");
const GOOGLE_TAG_MANAGER_SERVER: Owner = (
    "Google Tag Manager (server container)",
    "developers.google.com/tag-platform/tag-manager/server-side",
);
const HAPROXY: Owner = ("HAProxy", "docs.haproxy.org, cookie");
const HEAP: Owner = ("Heap", "docs.contentsquare.com/en/web/cookies");
const HOTJAR: Owner = ("Hotjar", "help.hotjar.com/hc/en-us/articles/6952777582999");
const HUBSPOT: Owner = (
    "HubSpot",
    "knowledge.hubspot.com/privacy-and-consent/what-cookies-does-hubspot-set-in-a-visitor-s-browser",
);
const HUMAN: Owner =
    ("HUMAN (PerimeterX)", "docs.humansecurity.com/applications-and-accounts/docs/cookies");
const IAB_TRANSPARENCY_AND_CONSENT_FRAMEWORK: Owner = (
    "IAB Transparency and Consent Framework",
    "github.com/InteractiveAdvertisingBureau/GDPR-Transparency-and-Consent-Framework",
);
const IAB_US_PRIVACY: Owner =
    ("IAB US Privacy", "github.com/InteractiveAdvertisingBureau/USPrivacy");
const IMPERVA: Owner = ("Imperva", "docs.imperva.com");
const INGRESS_NGINX: Owner =
    ("Ingress-NGINX", "kubernetes.github.io/ingress-nginx/examples/affinity/cookie");
const INTERCOM: Owner = ("Intercom", "intercom.com/help/en/articles/2361922");
const JETPACK_AND_WOOCOMMERCE: Owner =
    ("Jetpack and WooCommerce, Tracks", "jetpack.com/support/cookies");
const JETPACK_AND_WOOCOMMERCE_COOKIES: Owner =
    ("Jetpack and WooCommerce, Tracks", "automattic.com/cookies");
const KLARO: Owner = ("Klaro", "klaro.org");
const KLAVIYO: Owner = ("Klaviyo", "help.klaviyo.com/hc/en-us/articles/360034666712");
const LEADFEEDER: Owner = ("Leadfeeder", "help.leadfeeder.com");
const LINKEDIN: Owner = ("LinkedIn", "linkedin.com/legal/l/cookie-table");
const LIVECHAT: Owner = ("LiveChat", "livechat.com/help");
const LIVEPERSON: Owner =
    ("LivePerson", "knowledge.liveperson.com/liveperson-browser-cookies-storage");
const LUCKY_ORANGE: Owner =
    ("Lucky Orange", "developers.luckyorange.com/libraries/browser/cookies-storage");
const MARKETO: Owner = ("Marketo", "experienceleague.adobe.com/docs/marketo");
const MATOMO: Owner = ("Matomo", "matomo.org/faq/general/faq_146");
const META: Owner =
    ("Meta", "developers.facebook.com/docs/marketing-api/conversions-api/parameters/fbp-and-fbc");
const MICROSOFT_ADVERTISING: Owner =
    ("Microsoft Advertising", "help.ads.microsoft.com/apex/index/3/en/53056");
const MICROSOFT_CLARITY: Owner =
    ("Microsoft Clarity", "learn.microsoft.com/clarity/setup-and-installation/cookie-list");
const MOUSEFLOW: Owner =
    ("Mouseflow", "help.mouseflow.com/en/articles/4282966-what-is-your-cookie-policy");
const NETSCALER: Owner = ("NetScaler", "docs.netscaler.com");
const NGINX: Owner =
    ("nginx, sticky cookie", "nginx.org/en/docs/http/ngx_http_upstream_module.html#sticky");
const OLARK: Owner = ("Olark", "olark.com/help/cookies");
const ONETRUST: Owner = (
    "OneTrust",
    "my.onetrust.com/articles/en_US/Knowledge/UUID-2dc719a8-4be5-8d16-1dc8-c7b4147b88e0",
);
const OSANO: Owner = ("Osano", "docs.osano.com");
const PARSE_LY: Owner = ("Parse.ly", "docs.parse.ly/privacy/cookies");
const PIANO_ANALYTICS: Owner =
    ("Piano Analytics", "developers.piano.io/analytics/data-collection/general/cookie-storage");
const PINTEREST: Owner =
    ("Pinterest", "help.pinterest.com/en/business/article/pinterest-tag-parameters-and-cookies");
const QUANTCAST: Owner = ("Quantcast", "quantcast.com/privacy");
const REAL_COOKIE_BANNER: Owner = ("Real Cookie Banner", "devowl.io/rcb/data-processing");
const REDDIT: Owner = ("Reddit", "business.reddithelp.com");
const SEGMENT: Owner = ("Segment", "support.twilio.com/hc/en-us/articles/51556786109083");
const SHARPSPRING: Owner = ("SharpSpring", "sharpspring.com");
const SMARTSUPP: Owner = ("Smartsupp", "help.smartsupp.com");
const SNAPCHAT: Owner = ("Snapchat", "businesshelp.snapchat.com");
const SNOWPLOW: Owner =
    ("Snowplow", "docs.snowplow.io/docs/sources/web-trackers/cookies-and-local-storage");
const SOURCEBUSTER: Owner = (
    "Sourcebuster: order attribution of WooCommerce, by script, since 8.5",
    "woocommerce.com/document/order-attribution-tracking",
);
const STRIPE: Owner =
    ("Stripe, on every page that has its script", "stripe.com/legal/cookies-policy");
const TARTEAUCITRON_JS: Owner = ("tarteaucitron.js", "github.com/AmauriC/tarteaucitron.js");
const TAWK_TO: Owner =
    ("tawk.to", "help.tawk.to/article/what-are-tawkto-cookies-and-what-do-they-do");
const TIKTOK: Owner = ("TikTok", "ads.tiktok.com/help/article/using-cookies-with-tiktok-pixel");
const TRUSTARC: Owner = ("TrustArc", "trustarc.com");
const VWO: Owner = ("VWO", "help.vwo.com/hc/en-us/articles/360033990873");
const X: Owner = ("X", "help.x.com");
const YANDEX_METRICA: Owner =
    ("Yandex Metrica", "yandex.com/support/metrica/general/cookie-usage.html");
const ZENDESK: Owner = ("Zendesk", "support.zendesk.com/hc/en-us/articles/4408828505754");

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
            "cookie_notice_accepted",
            "viewed_cookie_policy",
            "CookieConsent",
            "cookieconsent_status",
            "kameleoonVisitorCode",
            "AWSELBAuthSessionCookie-0",
            "AWSALBAuthNonce",
            "NSC_TMAS",
            "mp_remember",
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
