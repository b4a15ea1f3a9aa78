//! Tokens recognised by the prefix that their service assigns.

use super::judge::{entropy, is_placeholder, is_word};

/// A token's prefix and body.
pub(super) struct Token {
    pub(super) rule: &'static str,
    pub(super) prefix: &'static str,
    body: Body,
    least: usize,
    most: usize,
}

/// The alphabet of a token's body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// Of both cases, and digits.
    Alnum,
    /// Capitals and digits.
    Capitals,
    /// Small letters and digits.
    Small,
    /// 0-9, a-f, A-F.
    Hex,
    /// URL-safe base64: with `-` and `_`.
    Url,
    /// Standard base64.
    Base64,
    /// Parts in URL-safe base64, separated by dots.
    Dotted,
}

impl Body {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Small => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Url => byte.is_ascii_alphanumeric() || b"-_".contains(&byte),
            Self::Base64 => byte.is_ascii_alphanumeric() || b"+/=".contains(&byte),
            Self::Dotted => byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte),
        }
    }

    /// An entropy that random bodies nearly always exceed, and words nearly never.
    fn least_entropy(self) -> f32 {
        match self {
            Self::Hex => 2.6,
            Self::Capitals => 2.9,
            _ => 3.0,
        }
    }
}

impl Token {
    /// Whether a token starts at `at`, where its prefix was found.
    pub(super) fn matches(&self, bytes: &[u8], at: usize) -> bool {
        if at > 0 && is_word(bytes[at - 1]) {
            return false;
        }
        let after = &bytes[at + self.prefix.len()..];
        let seen = &after[..after.len().min(self.most + 1)];
        let length = seen.iter().position(|byte| !self.body.has(*byte)).unwrap_or(seen.len());
        let body = &seen[..length];
        // Requiring a digit excludes long identifiers.
        (self.least..=self.most).contains(&length)
            && body.iter().any(u8::is_ascii_digit)
            && entropy(body) >= self.body.least_entropy()
            && !is_placeholder(body)
    }
}

const fn exact(rule: &'static str, prefix: &'static str, body: Body, length: usize) -> Token {
    Token { rule, prefix, body, least: length, most: length }
}

const fn range(
    rule: &'static str,
    prefix: &'static str,
    body: Body,
    least: usize,
    most: usize,
) -> Token {
    Token { rule, prefix, body, least, most }
}

/// All tokens that can be recognised by their prefix.
pub(super) const TOKENS: &[Token] = &[
    // Clouds.
    exact("aws-access-key", "AKIA", Body::Capitals, 16),
    exact("aws-access-key", "ASIA", Body::Capitals, 16),
    exact("aws-access-key", "ABIA", Body::Capitals, 16),
    exact("aws-access-key", "ACCA", Body::Capitals, 16),
    range("aws-bedrock-key", "ABSK", Body::Base64, 109, 280),
    exact("google-api-key", "AIza", Body::Url, 35),
    range("google-oauth-token", "ya29.", Body::Dotted, 30, 400),
    range("google-refresh-token", "1//0", Body::Url, 30, 120),
    range("google-client-secret", "GOCSPX-", Body::Url, 24, 40),
    exact("alibaba-access-key", "LTAI", Body::Alnum, 20),
    range("tencent-secret-id", "AKID", Body::Alnum, 32, 36),
    exact("digitalocean-token", "dop_v1_", Body::Hex, 64),
    exact("digitalocean-token", "doo_v1_", Body::Hex, 64),
    exact("digitalocean-token", "dor_v1_", Body::Hex, 64),
    exact("scaleway-key", "SCW", Body::Capitals, 17),
    range("heroku-key", "HRKU-AA", Body::Url, 50, 70),
    range("fly-token", "fm2_", Body::Base64, 100, 1_000),
    range("fly-token", "fo1_", Body::Url, 43, 43),
    range("netlify-token", "nfp_", Body::Alnum, 36, 44),
    exact("supabase-token", "sbp_", Body::Hex, 40),
    range("planetscale-token", "pscale_tkn_", Body::Dotted, 32, 64),
    range("planetscale-token", "pscale_pw_", Body::Dotted, 32, 64),
    range("planetscale-token", "pscale_oauth_", Body::Dotted, 32, 64),
    range("vault-token", "hvs.", Body::Url, 24, 150),
    range("vault-token", "hvb.", Body::Url, 100, 320),
    exact("pulumi-token", "pul-", Body::Hex, 40),
    range("databricks-token", "dapi", Body::Hex, 32, 32),
    range("dynatrace-token", "dt0c01.", Body::Dotted, 89, 89),
    range("doppler-token", "dp.pt.", Body::Alnum, 40, 46),
    range("doppler-token", "dp.st.", Body::Dotted, 40, 70),
    range("onepassword-token", "ops_eyJ", Body::Base64, 200, 2_000),
    range("age-secret-key", "AGE-SECRET-KEY-1", Body::Capitals, 58, 58),
    // Code and packages.
    range("github-token", "ghp_", Body::Alnum, 36, 255),
    range("github-token", "gho_", Body::Alnum, 36, 255),
    range("github-token", "ghu_", Body::Alnum, 36, 255),
    range("github-token", "ghs_", Body::Alnum, 36, 255),
    range("github-token", "ghr_", Body::Alnum, 36, 255),
    range("github-token", "github_pat_", Body::Url, 40, 255),
    range("gitlab-token", "glpat-", Body::Dotted, 20, 320),
    range("gitlab-token", "gldt-", Body::Url, 20, 60),
    range("gitlab-token", "glrt-", Body::Dotted, 20, 320),
    range("gitlab-token", "glptt-", Body::Hex, 40, 40),
    range("gitlab-token", "glcbt-", Body::Url, 20, 40),
    range("gitlab-token", "glsoat-", Body::Url, 20, 40),
    range("gitlab-token", "gloas-", Body::Url, 60, 70),
    range("gitlab-token", "glagent-", Body::Url, 50, 60),
    range("gitlab-token", "glft-", Body::Url, 20, 60),
    range("bitbucket-token", "ATBB", Body::Alnum, 28, 40),
    range("atlassian-token", "ATATT3", Body::Dotted, 100, 260),
    exact("npm-token", "npm_", Body::Alnum, 36),
    range("pypi-token", "pypi-AgE", Body::Url, 50, 1_000),
    exact("rubygems-token", "rubygems_", Body::Hex, 48),
    exact("crates-token", "cio", Body::Alnum, 32),
    exact("nuget-key", "oy2", Body::Small, 43),
    exact("clojars-token", "CLOJARS_", Body::Small, 60),
    range("docker-token", "dckr_pat_", Body::Url, 27, 40),
    exact("artifactory-key", "AKCp", Body::Alnum, 69),
    range("circleci-token", "CCIPAT_", Body::Url, 40, 80),
    range("buildkite-token", "bkua_", Body::Hex, 40, 40),
    range("postman-key", "PMAK-", Body::Url, 59, 59),
    range("sourcegraph-token", "sgp_", Body::Url, 40, 64),
    range("sonar-token", "squ_", Body::Hex, 40, 40),
    range("sonar-token", "sqp_", Body::Hex, 40, 40),
    range("sentry-token", "sntrys_", Body::Dotted, 60, 500),
    exact("sentry-token", "sntryu_", Body::Hex, 64),
    range("grafana-token", "glsa_", Body::Url, 41, 41),
    range("grafana-token", "glc_eyJ", Body::Base64, 40, 400),
    range("newrelic-key", "NRAK-", Body::Capitals, 27, 27),
    range("linear-key", "lin_api_", Body::Alnum, 40, 40),
    range("notion-token", "ntn_", Body::Alnum, 40, 60),
    range("figma-token", "figd_", Body::Url, 40, 60),
    range("prefect-key", "pnu_", Body::Alnum, 36, 36),
    range("readme-key", "rdme_", Body::Small, 70, 70),
    range("contentful-token", "CFPAT-", Body::Url, 43, 43),
    range("typeform-token", "tfp_", Body::Dotted, 40, 70),
    // Models.
    range("anthropic-key", "sk-ant-", Body::Url, 40, 200),
    range("openai-key", "sk-proj-", Body::Url, 40, 220),
    range("openai-key", "sk-svcacct-", Body::Url, 40, 220),
    range("openai-key", "sk-admin-", Body::Url, 40, 220),
    range("openrouter-key", "sk-or-v1-", Body::Hex, 64, 64),
    exact("openai-key", "sk-", Body::Alnum, 48),
    range("huggingface-token", "hf_", Body::Alnum, 34, 40),
    exact("replicate-token", "r8_", Body::Alnum, 37),
    exact("groq-key", "gsk_", Body::Alnum, 52),
    range("xai-key", "xai-", Body::Alnum, 80, 80),
    range("perplexity-key", "pplx-", Body::Alnum, 48, 56),
    range("langsmith-key", "lsv2_pt_", Body::Url, 40, 50),
    // Money, mail and messages.
    range("stripe-key", "sk_live_", Body::Alnum, 16, 250),
    range("stripe-key", "rk_live_", Body::Alnum, 16, 250),
    range("stripe-webhook-secret", "whsec_", Body::Alnum, 32, 64),
    range("square-token", "sq0atp-", Body::Url, 22, 22),
    range("square-secret", "sq0csp-", Body::Url, 43, 43),
    exact("shopify-token", "shpat_", Body::Hex, 32),
    exact("shopify-token", "shpca_", Body::Hex, 32),
    exact("shopify-token", "shppa_", Body::Hex, 32),
    exact("shopify-token", "shpss_", Body::Hex, 32),
    exact("easypost-key", "EZAK", Body::Alnum, 54),
    range("shippo-token", "shippo_live_", Body::Hex, 40, 40),
    range("razorpay-key", "rzp_live_", Body::Alnum, 14, 14),
    range("duffel-token", "duffel_live_", Body::Dotted, 43, 43),
    range("flutterwave-key", "FLWSECK-", Body::Alnum, 32, 40),
    range("facebook-token", "EAAM", Body::Alnum, 100, 400),
    range("facebook-token", "EAAC", Body::Alnum, 100, 400),
    range("sendgrid-key", "SG.", Body::Dotted, 66, 66),
    exact("mailgun-key", "key-", Body::Hex, 32),
    range("brevo-key", "xkeysib-", Body::Url, 81, 81),
    exact("twilio-key", "SK", Body::Hex, 32),
    range("slack-token", "xoxa-", Body::Url, 20, 260),
    range("slack-token", "xoxb-", Body::Url, 20, 260),
    range("slack-token", "xoxe-", Body::Url, 20, 260),
    range("slack-token", "xoxo-", Body::Url, 20, 260),
    range("slack-token", "xoxp-", Body::Url, 20, 260),
    range("slack-token", "xoxr-", Body::Url, 20, 260),
    range("slack-token", "xoxs-", Body::Url, 20, 260),
    range("slack-token", "xoxe.xox", Body::Dotted, 60, 260),
    range("slack-token", "xapp-", Body::Url, 30, 260),
];
