package redact

import "bytes"

// rule finds secrets of some kinds.
type rule struct {
	// kinds are all kinds that match may return.
	kinds []string
	// anchors are the bytes that call for a closer look; in lower case if fold.
	anchors []string
	fold    bool
	rank    int
	// match examines a place that has an anchor of n bytes. Anchors come in the order of the
	// text. To keep the time linear, a rule must not walk over the same bytes after each of
	// many anchors: see textScan.
	match func(l *textScan, at, n int) (candidate, bool)
}

func allRules() []rule {
	rules := []rule{
		{kinds: []string{"private-key"}, anchors: []string{"-----begin "}, fold: true, match: matchPrivateKey},
		{kinds: []string{"jwt"}, anchors: []string{"eyJ"}, match: matchJWT},
		{kinds: []string{"url-password"}, anchors: []string{"://"}, rank: rankPlaced, match: matchURL},
		{kinds: []string{"bearer-token", "basic-auth"}, anchors: []string{"bearer ", "basic "}, fold: true, rank: rankPlaced, match: matchAuthorization},
		{kinds: []string{"bearer-token"}, anchors: []string{"authorization"}, fold: true, rank: rankPlaced, match: matchAuthorizationHeader},
		{kinds: []string{"otp-secret"}, anchors: []string{"otpauth://"}, rank: rankPlaced, match: matchOTP},
		{kinds: []string{"webhook-url"}, anchors: webhooks, rank: rankPlaced, match: matchWebhook},
		{kinds: []string{"telegram-token"}, anchors: []string{":AA"}, match: matchTelegram},
		{kinds: []string{"azure-sas"}, anchors: []string{"sig="}, rank: rankPlaced, match: matchAzureSignature},
		{kinds: []string{"private-key"}, anchors: []string{"-----end "}, fold: true, match: matchKeyEnd},
		{kinds: []string{"private-key"}, anchors: keyBodies, rank: rankPlaced, match: matchKeyBody},
		{kinds: []string{"private-key"}, anchors: []string{encodedBegin}, match: matchEncodedKey},
		{kinds: []string{"azure-client-secret"}, anchors: eachBefore("0123456789", "Q~"), match: matchAzureSecret},
		{kinds: []string{"twilio-key"}, anchors: eachAfter("SK", "0123456789abcdef"), match: matchTwilio},
		{kinds: []string{"discord-token"}, anchors: discordBegins(), match: matchDiscord},
		{kinds: []string{"airtable-token"}, anchors: []string{"pat"}, match: matchAirtable},
		{kinds: []string{"mailgun-key"}, anchors: []string{"mailgun"}, fold: true, match: matchMailgun},
		{kinds: []string{"basic-auth"}, anchors: []string{`auth"`, `auth\`, "_auth=", "_auth ="}, fold: true, rank: rankPlaced, match: matchAuthMember},
		{kinds: []string{isPassword}, anchors: commandNames(), rank: rankPlaced, match: matchCommand},
		{kinds: []string{isPassword}, anchors: []string{"machine "}, rank: rankPlaced, match: matchNetrc},
		{kinds: []string{isPassword}, anchors: []string{"identified "}, fold: true, rank: rankPlaced, match: matchIdentified},
		{kinds: []string{isPassword, isToken, isKey, isSecret}, anchors: nameAnchors, fold: true, rank: rankNamed, match: matchAssignment},
	}
	for i := range tokens {
		t := &tokens[i]
		rules = append(rules, rule{kinds: []string{t.kind}, anchors: t.prefixes, match: t.match})
	}
	return rules
}

// token is a secret that begins with fixed bytes.
type token struct {
	kind     string
	prefixes []string
	body     *alphabet
	min, max int // bytes after the prefix; max 0 means any number
	// check, if set, has the last word on the bytes after the prefix.
	check func(t *tail, from int) bool
}

// tokens are the secrets that their issuers made easy to recognise. The lengths are the
// issuers', a little lower where they have been known to vary.
var tokens = []token{
	// Clouds.
	{"aws-access-key", []string{"AKIA", "ASIA", "ABIA", "ACCA"}, base32, 16, 16, nil},
	{"aws-bedrock-key", []string{"ABSK"}, base64Std, 100, 0, nil},
	{"google-api-key", []string{"AIza"}, wordDash, 35, 35, nil},
	{"google-oauth-secret", []string{"GOCSPX-"}, wordDash, 28, 28, nil},
	{"google-oauth-token", []string{"ya29."}, wordDash, 30, 0, nil},
	{"google-refresh-token", []string{"1//0"}, wordDash, 40, 0, nil},
	{"azure-storage-key", []string{"AccountKey="}, base64Std, 86, 88, nil},
	{"azure-shared-key", []string{"SharedAccessKey="}, base64Std, 40, 88, nil},
	{"digitalocean-token", []string{"dop_v1_", "doo_v1_", "dor_v1_"}, hexDigits, 64, 64, nil},
	{"heroku-key", []string{"HRKU-"}, wordDash, 30, 0, nil},
	{"tailscale-key", []string{"tskey-auth-", "tskey-api-", "tskey-client-"}, wordDash, 20, 0, nil},
	{"fly-token", []string{"FlyV1 fm2_", "FlyV1 fm1r_"}, base64Std, 40, 0, nil},
	{"terraform-token", []string{".atlasv1."}, wordDash, 60, 0, nil},
	{"vault-token", []string{"hvs.", "hvb.", "hvr."}, wordDash, 24, 0, nil},
	{"databricks-token", []string{"dapi"}, hexDash, 32, 34, nil},
	{"pulumi-token", []string{"pul-"}, hexDigits, 40, 40, nil},
	{"planetscale-token", []string{"pscale_tkn_", "pscale_oauth_", "pscale_pw_"}, wordDash, 32, 0, nil},
	{"supabase-key", []string{"sbp_"}, hexDigits, 40, 40, nil},
	{"supabase-key", []string{"sb_secret_"}, wordDash, 20, 0, nil},
	{"neon-key", []string{"napi_"}, letterDigits, 40, 0, nil},
	{"netlify-token", []string{"nfp_"}, letterDigits, 36, 0, nil},
	{"render-key", []string{"rnd_"}, letterDigits, 28, 0, (*tail).mixed},
	{"vercel-token", []string{"vcp_", "vci_", "vca_", "vcr_", "vck_"}, letterDigits, 24, 0, (*tail).mixed},

	// Where code lives.
	{"github-token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, letterDigits, 36, 255, nil},
	{"github-token", []string{"github_pat_"}, word, 60, 255, nil},
	{"gitlab-token", []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "gloas-", "glimt-", "GR1348941"}, wordDashDot, 20, 0, nil},
	{"npm-token", []string{"npm_"}, letterDigits, 36, 36, nil},
	{"pypi-token", []string{"pypi-AgE"}, wordDash, 50, 0, nil},
	{"rubygems-key", []string{"rubygems_"}, hexDigits, 48, 48, nil},
	{"crates-token", []string{"cio"}, letterDigits, 32, 32, (*tail).mixed},
	{"docker-token", []string{"dckr_pat_", "dckr_oat_"}, wordDash, 27, 0, nil},
	{"buildkite-token", []string{"bkua_"}, hexDigits, 40, 40, nil},
	{"circleci-token", []string{"CCIPAT_", "CCIPRJ_"}, word, 40, 0, nil},
	{"sentry-token", []string{"sntrys_", "sntryu_"}, base64Word, 40, 0, nil},
	{"atlassian-token", []string{"ATATT3", "ATCTT3"}, base64Word, 60, 0, nil},
	{"bitbucket-password", []string{"ATBB"}, letterDigits, 28, 36, (*tail).mixed},
	{"artifactory-key", []string{"AKCp"}, letterDigits, 60, 80, (*tail).mixed},
	{"nuget-key", []string{"oy2"}, lowerDigits, 43, 43, (*tail).mixed},

	// Models.
	{"anthropic-key", []string{"sk-ant-"}, wordDash, 32, 0, nil},
	{"openai-key", []string{"sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"}, wordDash, 32, 0, nil},
	{"openrouter-key", []string{"sk-or-v1-"}, hexDigits, 64, 64, nil},
	{"api-key", []string{"sk-"}, letterDigits, 32, 64, (*tail).mixed}, // OpenAI's older keys, and many that copied them
	{"huggingface-token", []string{"hf_"}, letterDigits, 34, 40, nil},
	{"groq-key", []string{"gsk_"}, letterDigits, 40, 0, nil},
	{"xai-key", []string{"xai-"}, letterDigits, 60, 0, nil},
	{"perplexity-key", []string{"pplx-"}, letterDigits, 40, 0, nil},
	{"replicate-token", []string{"r8_"}, letterDigits, 37, 40, nil},
	{"langsmith-key", []string{"lsv2_pt_", "lsv2_sk_"}, word, 40, 0, nil},
	{"tavily-key", []string{"tvly-"}, wordDash, 24, 0, (*tail).mixed},
	{"nvidia-key", []string{"nvapi-"}, wordDash, 50, 0, nil},
	{"pinecone-key", []string{"pcsk_"}, word, 40, 0, nil},
	{"elevenlabs-key", []string{"sk_"}, hexDigits, 48, 48, nil},
	{"langfuse-key", []string{"sk-lf-"}, hexDash, 36, 36, nil},
	{"cerebras-key", []string{"csk-"}, letterDigits, 40, 0, (*tail).mixed},

	// Talk, mail, money and the rest.
	{"coppice-token", []string{"cop_"}, base32, 52, 52, nil}, // our own: see server/token
	{"slack-token", []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xoxp-", "xoxe.xoxb-", "xapp-", "xoxc-"}, wordDash, 24, 0, (*tail).mixed},
	{"slack-token", []string{"xoxd-"}, cookieBytes, 40, 0, (*tail).mixed},
	{"mailgun-key", []string{"key-"}, hexDigits, 32, 32, notAfterDash},
	{"hubspot-token", []string{"pat-na1-", "pat-na2-", "pat-eu1-", "pat-ap1-"}, hexDash, 36, 36, nil},
	{"dynatrace-token", []string{"dt0c01.", "dt0s01.", "dt0s16."}, wordDashDot, 80, 96, hasDot},
	{"mapbox-token", []string{"sk.eyJ"}, wordDashDot, 60, 0, hasDot},
	{"braintree-token", []string{"access_token$production$", "access_token$sandbox$"}, dollarDigits, 49, 49, nil},
	{"duffel-token", []string{"duffel_live_", "duffel_test_"}, wordDash, 40, 0, (*tail).mixed},
	{"twitter-token", []string{"AAAAAAAAAAAAAAAAAAAAA"}, percentBytes, 80, 120, hasPercent},
	{"laravel-key", []string{"base64:"}, base64Std, 44, 44, endsPadded},
	{"onepassword-token", []string{"ops_eyJ"}, base64Word, 100, 0, nil},
	{"facebook-token", []string{"EAA"}, letterDigits, 90, 0, (*tail).isRandom},
	{"square-token", []string{"EAAA"}, wordDash, 60, 60, (*tail).isRandom},
	{"stripe-key", []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_"}, letterDigits, 20, 0, nil},
	{"webhook-secret", []string{"whsec_"}, base64Word, 24, 0, nil},
	{"square-token", []string{"sq0atp-", "sq0csp-"}, wordDash, 22, 0, nil},
	{"shopify-token", []string{"shpat_", "shpca_", "shppa_", "shpss_"}, hexDigits, 32, 32, nil},
	{"sendgrid-key", []string{"SG."}, wordDashDot, 60, 72, hasDot},
	{"linear-key", []string{"lin_api_", "lin_oauth_"}, letterDigits, 40, 0, nil},
	{"notion-key", []string{"ntn_", "secret_"}, letterDigits, 40, 50, (*tail).mixed},
	{"figma-token", []string{"figd_", "figu_"}, wordDash, 38, 0, nil},
	{"postman-key", []string{"PMAK-"}, hexDash, 59, 59, nil},
	{"grafana-token", []string{"glc_", "glsa_"}, base64Word, 32, 0, nil},
	{"newrelic-key", []string{"NRAK-"}, letterDigits, 27, 27, nil},
	{"doppler-token", []string{"dp.pt.", "dp.st.", "dp.sa."}, wordDashDot, 40, 0, nil},
	{"age-key", []string{"AGE-SECRET-KEY-1"}, letterDigits, 58, 58, nil},
}

// match examines a prefix. The token must begin and end there, and not be part of
// something longer.
//
// The prefix may consist of the same bytes as what follows it, so the run is
// remembered, and questions about the body are answered by the run's tail.
func (t *token) match(l *textScan, at, n int) (candidate, bool) {
	text, from := l.text, at+n
	start := at
	if text[at] == '.' { // the prefix is in the middle
		// No other anchor walks here: the dot ends the run that leads to it.
		for start > 0 && letterDigits[text[start-1]] && !isEscape(text, start) {
			start--
		}
		l.work += at - start
	}
	if !beginsAt(text, start) || letterDigits.has(text[at:from]) && isAfterBase64(text, at) {
		return candidate{}, false
	}
	body := l.run(t.body, from)
	end := body.end
	length := end - from
	if length < t.min || t.max > 0 && length > t.max || end < len(text) && word[text[end]] {
		return candidate{}, false
	}
	if tail := l.bodyTail(body); tail.hasStandIn(from) || !tail.isVaried(from) || t.check != nil && !t.check(tail, from) {
		return candidate{}, false
	}
	if text[from-1] == '=' { // the prefix is a name, and stays
		start = from
	}
	return candidate{kind: t.kind, span: span{start, end}, shown: text[at:from], secret: from}, true
}

// hasDot reports whether there is a dot inside. It is only for bodies of limited length.
func hasDot(t *tail, from int) bool {
	return bytes.IndexByte(t.text[from+1:t.end-1], '.') >= 0
}

// hasPercent reports whether there is an escaped byte inside. It is only for bodies of limited
// length.
func hasPercent(t *tail, from int) bool {
	return bytes.IndexByte(t.text[from:t.end], '%') >= 0
}

// endsPadded reports whether a body is 32 bytes in base64.
func endsPadded(t *tail, from int) bool {
	return t.text[t.end-1] == '=' && t.text[t.end-2] != '=' && t.mixed(from)
}

// notAfterDash reports whether no dash comes before a token whose prefix has four bytes:
// cache-key-… is not a key.
func notAfterDash(t *tail, from int) bool {
	return from < 5 || t.text[from-5] != '-'
}
