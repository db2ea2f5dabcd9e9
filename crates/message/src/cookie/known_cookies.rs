//! Known cookies, on which no page depends: one list for the profile `safe` and all presets.
//!
//! A cookie is listed if a script or an intermediary sets it for every visitor, and the application
//! that makes the pages never reads it.

/// The reader of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieReader {
    /// Only scripts in the browser.
    Script,
    /// A machine between client and server: a balancer, a bot filter, or a tag server. It may stand
    /// before this cache, or behind it, where it directs a client to the server with its session.
    Way,
}

/// A well-known cookie.
#[derive(Clone, Copy, Debug)]
pub struct KnownCookie {
    /// The cookie's name; a `*` at its end stands for any suffix.
    pub name: &'static str,
    /// The cookie's reader.
    pub by: CookieReader,
    /// The cookie's vendor.
    pub of: &'static str,
    /// The vendor's description of the cookie, as a URL without `https://`.
    pub source: &'static str,
}

/// Known cookies. Sorted without the stars, and no starred name is a prefix of another: so only the
/// last name that is not after the searched one can match.
///
/// Similar cookies are omitted for these reasons:
/// - Servers read the consent: `wp_consent_*`, `wpl_user_preference`; `cookie_notice_accepted` and
///   `hu-consent` of Cookie Notice, `viewed_cookie_policy` and `cookielawinfo-*` of Cookie Law
///   Info, `_iub_cs-*` of iubenda, whose plugins make pages by them; `CookieConsent` of Cookiebot.
/// - Servers read the language or currency: `pll_language`, `wcml_client_currency`.
/// - Servers take part in the experiment: `mbox`, `optimizelyEndUserId`, `ph_*`,
///   `kameleoonVisitorCode`.
/// - A balancer keeps a login: `AWSELBAuthSessionCookie-*` and `AWSALBAuthNonce` of AWS; `NSC_TMAS`
///   and `NSC_AAAC` of NetScaler, and therefore `NSC_*`.
/// - The name has another meaning elsewhere: `route`, `visitor_id`, `cookie_consent`,
///   `cookieconsent_status`, `CookieControl`; `mp_*`, the prefix of Mixpanel.
pub const KNOWN: &[KnownCookie] = &[
    row("ABTasty", CookieReader::Script, AB_TASTY),
    row("ABTastySession", CookieReader::Script, AB_TASTY),
    row("AKA_A2", CookieReader::Way, AKAMAI),
    row("AMCVS_*", CookieReader::Script, ADOBE_ANALYTICS),
    row("AMCV_*", CookieReader::Script, ADOBE_ANALYTICS_SDK),
    row("AMP_*", CookieReader::Script, AMPLITUDE),
    row("ARRAffinity*", CookieReader::Way, AZURE_APP_SERVICE),
    row("ASLBSA", CookieReader::Way, AZURE_FRONT_DOOR),
    row("ASLBSACORS", CookieReader::Way, AZURE_FRONT_DOOR),
    row("AWSALB", CookieReader::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBAPP*", CookieReader::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBCORS", CookieReader::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBTG", CookieReader::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSALBTGCORS", CookieReader::Way, AWS_ELASTIC_LOAD_BALANCING),
    row("AWSELB", CookieReader::Way, AWS_ELASTIC_LOAD_BALANCING_HTML),
    row("AWSELBCORS", CookieReader::Way, AWS_ELASTIC_LOAD_BALANCING_HTML),
    row("ApplicationGatewayAffinity*", CookieReader::Way, AZURE_APPLICATION_GATEWAY),
    row("BIGipServer*", CookieReader::Way, F5_BIG_IP),
    row("FPAU", CookieReader::Way, GOOGLE_TAG_MANAGER_SERVER),
    row("FPGCLAW", CookieReader::Way, GOOGLE_TAG_MANAGER_SERVER),
    row("FPID", CookieReader::Way, GOOGLE_TAG_MANAGER_SERVER),
    row("FPLC", CookieReader::Script, GOOGLE_TAG_MANAGER_SERVER),
    row("GCILB", CookieReader::Way, GOOGLE_CLOUD_LOAD_BALANCING),
    row("GCLB", CookieReader::Way, GOOGLE_CLOUD_LOAD_BALANCING),
    row("INGRESSCOOKIE", CookieReader::Way, INGRESS_NGINX),
    row("LPSID-*", CookieReader::Script, LIVEPERSON),
    row("LPVID", CookieReader::Script, LIVEPERSON),
    row("OTAdditionalConsentString", CookieReader::Script, ONETRUST),
    row("OptanonAlertBoxClosed", CookieReader::Script, ONETRUST),
    row("OptanonConsent", CookieReader::Script, ONETRUST),
    row("SERVERID", CookieReader::Way, HAPROXY),
    row("TawkConnectionTime", CookieReader::Script, TAWK_TO),
    row("__adroll*", CookieReader::Script, ADROLL),
    row("__ar_v4", CookieReader::Script, ADROLL),
    row("__cf_bm", CookieReader::Way, CLOUDFLARE),
    row("__cflb", CookieReader::Way, CLOUDFLARE),
    row("__cfruid", CookieReader::Way, CLOUDFLARE),
    row("__cfseq*", CookieReader::Way, CLOUDFLARE),
    row("__cfwaitingroom", CookieReader::Way, CLOUDFLARE),
    row("__eoi", CookieReader::Script, GOOGLE_ADS),
    row("__gads", CookieReader::Script, GOOGLE_ADS),
    row("__gpi", CookieReader::Script, GOOGLE_ADS),
    row("__gpi_optout", CookieReader::Script, GOOGLE_ADS),
    row("__gsas", CookieReader::Script, GOOGLE_ADS),
    row("__hs_cookie_cat_pref", CookieReader::Script, HUBSPOT),
    row("__hs_do_not_track", CookieReader::Script, HUBSPOT),
    row("__hs_gpc_banner_dismiss", CookieReader::Script, HUBSPOT),
    row("__hs_initial_opt_in", CookieReader::Script, HUBSPOT),
    row("__hs_opt_out", CookieReader::Script, HUBSPOT),
    row("__hssc", CookieReader::Script, HUBSPOT),
    row("__hssrc", CookieReader::Script, HUBSPOT),
    row("__hstc", CookieReader::Script, HUBSPOT),
    row("__kla_id", CookieReader::Script, KLAVIYO),
    row("__lc_cid", CookieReader::Script, LIVECHAT),
    row("__lc_cst", CookieReader::Script, LIVECHAT),
    row("__pxvid", CookieReader::Way, HUMAN),
    row("__qca", CookieReader::Script, QUANTCAST),
    row("__ss", CookieReader::Script, SHARPSPRING),
    row("__ss_referrer", CookieReader::Script, SHARPSPRING),
    row("__ss_tk", CookieReader::Script, SHARPSPRING),
    row("__stripe_mid", CookieReader::Script, STRIPE),
    row("__stripe_sid", CookieReader::Script, STRIPE),
    row("__utm*", CookieReader::Script, GOOGLE_ANALYTICS_CLASSIC),
    row("__zlcmid", CookieReader::Script, ZENDESK),
    row("__zlcprivacy", CookieReader::Script, ZENDESK),
    row("_abck", CookieReader::Way, AKAMAI),
    row("_cb", CookieReader::Script, CHARTBEAT),
    row("_cb_*", CookieReader::Script, CHARTBEAT),
    row("_ce.*", CookieReader::Script, CRAZY_EGG),
    row("_cfuvid", CookieReader::Way, CLOUDFLARE),
    row("_chartbeat*", CookieReader::Script, CHARTBEAT),
    row("_clck", CookieReader::Script, MICROSOFT_CLARITY),
    row("_clsk", CookieReader::Script, MICROSOFT_CLARITY),
    row("_conv_*", CookieReader::Script, CONVERT),
    row("_cs_c", CookieReader::Script, CONTENTSQUARE),
    row("_cs_cvars", CookieReader::Script, CONTENTSQUARE),
    row("_cs_ep", CookieReader::Script, CONTENTSQUARE),
    row("_cs_ex", CookieReader::Script, CONTENTSQUARE),
    row("_cs_i", CookieReader::Script, CONTENTSQUARE),
    row("_cs_id", CookieReader::Script, CONTENTSQUARE),
    row("_cs_mk_aa", CookieReader::Script, CONTENTSQUARE),
    row("_cs_mk_ga", CookieReader::Script, CONTENTSQUARE),
    row("_cs_optout", CookieReader::Script, CONTENTSQUARE),
    row("_cs_s", CookieReader::Script, CONTENTSQUARE),
    row("_cs_s_ctx", CookieReader::Script, CONTENTSQUARE),
    row("_dc_gtm_*", CookieReader::Script, GOOGLE_TAG_MANAGER),
    row("_derived_epik", CookieReader::Script, PINTEREST),
    row("_epik", CookieReader::Script, PINTEREST),
    row("_fbc", CookieReader::Script, META),
    row("_fbp", CookieReader::Script, META),
    row("_fw_crm_v", CookieReader::Script, FRESHCHAT),
    row("_ga", CookieReader::Script, GOOGLE_ANALYTICS),
    row("_ga_*", CookieReader::Script, GOOGLE_ANALYTICS),
    row("_gac_*", CookieReader::Script, GOOGLE_ADS),
    row("_gat", CookieReader::Script, GOOGLE_ANALYTICS),
    row("_gat_*", CookieReader::Script, GOOGLE_ANALYTICS),
    row("_gcl_*", CookieReader::Script, GOOGLE_ADS),
    row("_gid", CookieReader::Script, GOOGLE_ANALYTICS),
    row("_hj*", CookieReader::Script, HOTJAR),
    row("_hp2_*", CookieReader::Script, HEAP),
    row("_hp5_*", CookieReader::Script, HEAP),
    row("_lfa", CookieReader::Script, LEADFEEDER),
    row("_lo_uid", CookieReader::Script, LUCKY_ORANGE),
    row("_lo_v", CookieReader::Script, LUCKY_ORANGE),
    row("_lorid", CookieReader::Script, LUCKY_ORANGE),
    row("_mkto_trk", CookieReader::Script, MARKETO),
    row("_ok", CookieReader::Script, OLARK),
    row("_okac", CookieReader::Script, OLARK),
    row("_okbk", CookieReader::Script, OLARK),
    row("_okck", CookieReader::Script, OLARK),
    row("_okdetect", CookieReader::Script, OLARK),
    row("_okgid", CookieReader::Script, OLARK),
    row("_okla", CookieReader::Script, OLARK),
    row("_oklv", CookieReader::Script, OLARK),
    row("_parsely_*", CookieReader::Script, PARSE_LY),
    row("_pcid", CookieReader::Script, PIANO_ANALYTICS),
    row("_pctx", CookieReader::Script, PIANO_ANALYTICS),
    row("_pin_unauth", CookieReader::Script, PINTEREST),
    row("_pinterest_ct*", CookieReader::Script, PINTEREST),
    row("_pk_*", CookieReader::Script, MATOMO),
    row("_pprv", CookieReader::Script, PIANO_ANALYTICS),
    row("_px", CookieReader::Way, HUMAN),
    row("_px2", CookieReader::Way, HUMAN),
    row("_px3", CookieReader::Way, HUMAN),
    row("_pxde", CookieReader::Way, HUMAN),
    row("_pxff_*", CookieReader::Way, HUMAN),
    row("_pxhd", CookieReader::Way, HUMAN),
    row("_pxmvid", CookieReader::Way, HUMAN),
    row("_pxvid", CookieReader::Way, HUMAN),
    row("_rdt_uuid", CookieReader::Script, REDDIT),
    row("_scid*", CookieReader::Script, SNAPCHAT),
    row("_scor_uid", CookieReader::Script, COMSCORE),
    row("_sp_id.*", CookieReader::Script, SNOWPLOW),
    row("_sp_ses.*", CookieReader::Script, SNOWPLOW),
    row("_t_tests", CookieReader::Script, CHARTBEAT),
    row("_tawkuuid", CookieReader::Script, TAWK_TO),
    row("_tt_enable_cookie", CookieReader::Script, TIKTOK),
    row("_ttp", CookieReader::Script, TIKTOK),
    row("_twpid", CookieReader::Script, X),
    row("_uet*", CookieReader::Script, MICROSOFT_ADVERTISING),
    row("_v__cb_cp", CookieReader::Script, CHARTBEAT),
    row("_v__chartbeat3", CookieReader::Script, CHARTBEAT),
    row("_vis_opt_*", CookieReader::Script, VWO),
    row("_vwo_*", CookieReader::Script, VWO),
    row("_ym_*", CookieReader::Script, YANDEX_METRICA),
    row("acw_tc", CookieReader::Way, ALIBABA_CLOUD),
    row("addtl_consent", CookieReader::Script, GOOGLE),
    row("ajs_anonymous_id", CookieReader::Script, SEGMENT),
    row("ajs_group_id", CookieReader::Script, SEGMENT),
    row("ajs_user_id", CookieReader::Script, SEGMENT),
    row("ak_bmsc", CookieReader::Way, AKAMAI),
    row("amplitude_id*", CookieReader::Script, AMPLITUDE_SDK),
    row("aws-waf-token", CookieReader::Way, AWS_WAF),
    row("axeptio_*", CookieReader::Script, AXEPTIO),
    row("bm_mi", CookieReader::Way, AKAMAI),
    row("bm_s", CookieReader::Way, AKAMAI),
    row("bm_so", CookieReader::Way, AKAMAI),
    row("bm_ss", CookieReader::Way, AKAMAI),
    row("bm_sv", CookieReader::Way, AKAMAI),
    row("bm_sz", CookieReader::Way, AKAMAI),
    row("borlabs-cookie", CookieReader::Script, BORLABS_COOKIE),
    row("cc_cookie", CookieReader::Script, COOKIE_CONSENT),
    row("cf_chl_rc_*", CookieReader::Way, CLOUDFLARE),
    row("cf_clearance", CookieReader::Way, CLOUDFLARE),
    row("cf_ob_info", CookieReader::Way, CLOUDFLARE),
    row("cf_use_ob", CookieReader::Way, CLOUDFLARE),
    row("citrix_ns_id*", CookieReader::Way, NETSCALER),
    row("cmapi_*", CookieReader::Script, TRUSTARC),
    row("cmplz_*", CookieReader::Script, COMPLIANZ),
    row("cookiefirst-*", CookieReader::Script, COOKIEFIRST),
    row("cookieyes-consent", CookieReader::Script, COOKIEYES),
    row("crisp-client*", CookieReader::Script, CRISP),
    row("cto_bidid", CookieReader::Script, CRITEO),
    row("cto_bundle", CookieReader::Script, CRITEO),
    row("datadome", CookieReader::Way, DATADOME),
    row("didomi_dcs", CookieReader::Script, DIDOMI),
    row("didomi_token", CookieReader::Script, DIDOMI),
    row("drift_aid", CookieReader::Script, DRIFT),
    row("drift_campaign_refresh", CookieReader::Script, DRIFT),
    row("driftt_aid", CookieReader::Script, DRIFT),
    row("euconsent", CookieReader::Script, IAB_TRANSPARENCY_AND_CONSENT_FRAMEWORK),
    row("euconsent-v2", CookieReader::Script, IAB_TRANSPARENCY_AND_CONSENT_FRAMEWORK),
    row("eupubconsent-v2", CookieReader::Script, ONETRUST),
    row("fs_cid", CookieReader::Script, FULLSTORY),
    row("fs_lua", CookieReader::Script, FULLSTORY),
    row("fs_uid", CookieReader::Script, FULLSTORY),
    row("has_js", CookieReader::Script, DRUPAL_7),
    row("hblid", CookieReader::Script, OLARK),
    row("hs-messages-*", CookieReader::Script, HUBSPOT),
    row("hubspotutk", CookieReader::Script, HUBSPOT),
    row("incap_ses_*", CookieReader::Way, IMPERVA),
    row("intercom-*", CookieReader::Script, INTERCOM),
    row("klaro", CookieReader::Script, KLARO),
    row("li_fat_id", CookieReader::Script, LINKEDIN),
    row("ln_or", CookieReader::Script, LINKEDIN),
    row("lo-opt-out", CookieReader::Script, LUCKY_ORANGE),
    row("lo-uid", CookieReader::Script, LUCKY_ORANGE),
    row("lo-visits", CookieReader::Script, LUCKY_ORANGE),
    row("messagesUtk", CookieReader::Script, HUBSPOT),
    row("mf_user", CookieReader::Script, MOUSEFLOW),
    row("moove_gdpr_popup", CookieReader::Script, GDPR_COOKIE_COMPLIANCE),
    row("mtm_consent*", CookieReader::Script, MATOMO),
    row("mtm_cookie_consent", CookieReader::Script, MATOMO),
    row("nlbi_*", CookieReader::Way, IMPERVA),
    row("notice_behavior", CookieReader::Script, TRUSTARC),
    row("notice_gdpr_prefs", CookieReader::Script, TRUSTARC),
    row("notice_preferences", CookieReader::Script, TRUSTARC),
    row("olfsk", CookieReader::Script, OLARK),
    row("osano_consentmanager*", CookieReader::Script, OSANO),
    row("pa_privacy", CookieReader::Script, PIANO_ANALYTICS),
    row("pa_vid", CookieReader::Script, PIANO_ANALYTICS),
    row("pxcts", CookieReader::Way, HUMAN),
    row("real_cookie_banner*", CookieReader::Script, REAL_COOKIE_BANNER),
    row("s_cc", CookieReader::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_ecid", CookieReader::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_fid", CookieReader::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_sq", CookieReader::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("s_vi", CookieReader::Script, ADOBE_ANALYTICS_ANALYTICS),
    row("sbjs_*", CookieReader::Script, SOURCEBUSTER),
    row("srv_id", CookieReader::Way, NGINX),
    row("ssupp.*", CookieReader::Script, SMARTSUPP),
    row("tarteaucitron", CookieReader::Script, TARTEAUCITRON_JS),
    row("tawkUUID", CookieReader::Script, TAWK_TO),
    row("tawk_uuid_*", CookieReader::Script, TAWK_TO),
    row("tk_ai", CookieReader::Script, JETPACK_AND_WOOCOMMERCE),
    row("tk_lr", CookieReader::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_or", CookieReader::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_qs", CookieReader::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_r3d", CookieReader::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("tk_tc", CookieReader::Script, JETPACK_AND_WOOCOMMERCE_COOKIES),
    row("ttcsid*", CookieReader::Script, TIKTOK),
    row("twk_*", CookieReader::Script, TAWK_TO),
    row("usprivacy", CookieReader::Script, IAB_US_PRIVACY),
    row("visid_incap_*", CookieReader::Way, IMPERVA),
    row("wcsid", CookieReader::Script, OLARK),
];

const fn row(name: &'static str, by: CookieReader, (of, source): Owner) -> KnownCookie {
    KnownCookie { name, by, of, source }
}

/// A vendor, and the URL of its description of the cookies.
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

/// The reader of a known cookie. Names are compared with regard to case.
pub fn reader(name: &[u8]) -> Option<CookieReader> {
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
