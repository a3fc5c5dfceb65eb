package redact_test

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
)

// The secrets of these tests are made when they run: what looks real must not
// stand in the source, where others' scanners would find it.

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	upperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digitsOnly   = "0123456789"
	hexOnly      = "0123456789abcdef"
	base32Only   = upperLetters + "234567"
	alnum        = lowerLetters + upperLetters + digitsOnly
	base64Only   = alnum + "+/"
)

// random returns n bytes of an alphabet, always the same for the same arguments.
func random(alphabet string, n int) string {
	r := rand.New(rand.NewPCG(uint64(n), uint64(len(alphabet))))
	var b strings.Builder
	for range n {
		b.WriteByte(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

func b64(s string) string {
	return strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(s)), "=")
}

func jwt() string {
	return b64(`{"alg":"HS256","typ":"JWT"}`) + "." + b64(`{"sub":"u-8812","iat":1700000000}`) + "." + random(alnum, 43)
}

// privateKey returns a key whose lines are joined by lineEnd.
func privateKey(kind, lineEnd string) string {
	lines := []string{"-----BEGIN " + kind + "-----"}
	body := random(base64Only, 256)
	for len(body) > 0 {
		lines = append(lines, body[:64])
		body = body[64:]
	}
	return strings.Join(append(lines, "-----END "+kind+"-----"), lineEnd)
}

// samples are one secret of each kind, in the text that gives it away, if any.
// The secret is what stands between the marks « and ».
func samples() map[string][]string {
	all := map[string][]string{
		"jwt":         {"«" + jwt() + "»", "Authorization: Bearer «" + jwt() + "»"},
		"private-key": {"«" + privateKey("PRIVATE KEY", "\n") + "»", "«" + privateKey("RSA PRIVATE KEY", `\n`) + "»", "«" + privateKey("OPENSSH PRIVATE KEY", "\r\n") + "»"},
		"url-password": {
			"postgres://app:«" + random(alnum, 14) + "»@db.internal:5432/app", "redis://:«k3Yz9pQw»@cache:6379/0",
			"mongodb+srv://svc:«p%40x!Kz7q»@cluster0.mongodb.net", "git clone https://bob:«fJ3kd92kd0»@git.corp.io/x.git",
		},
		"bearer-token": {"authorization: bearer «" + random(alnum, 32) + "»", `-H "Authorization: Bearer «` + random(alnum+"-_", 48) + `»"`},
		"basic-auth":   {`"auth": "«` + base64.StdEncoding.EncodeToString([]byte("svc:Kx8#pq!2vL")) + `»"`, "//npm.corp.io/:_auth=«" + base64.StdEncoding.EncodeToString([]byte("svc:Kx8#pq!2vL")) + "»", "Authorization: Basic «" + base64.StdEncoding.EncodeToString([]byte("svc:Kx8#pq!2vL")) + "»"},
		"laravel-key":  {"APP_KEY=«base64:" + random(base64Only, 43) + "=»"},
		"otp-secret":   {"otpauth://totp/Corp:bob?secret=«" + random(upperLetters, 16) + "»&issuer=Corp"},
		"webhook-url": {
			"https://hooks.slack.com/services/«T0" + random(upperLetters, 8) + "/B0" + random(upperLetters, 8) + "/" + random(alnum, 24) + "»",
			"https://discord.com/api/webhooks/«" + random(digitsOnly, 18) + "/" + random(alnum+"-_", 68) + "»",
		},
		"telegram-token":    {"«" + random("123456789", 10) + ":AA" + random(alnum, 33) + "»"},
		"azure-sas":         {"https://x.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=«" + random(alnum, 40) + "%2Bx%3D»&se=2026"},
		"sendgrid-key":      {"«SG." + random(alnum, 22) + "." + random(alnum, 43) + "»"},
		"postman-key":       {"«PMAK-" + random(hexOnly, 24) + "-" + random(hexOnly, 34) + "»"},
		"azure-storage-key": {"DefaultEndpointsProtocol=https;AccountName=x;AccountKey=«" + random(base64Only, 86) + "==»;EndpointSuffix=core.windows.net"},
		"azure-shared-key":  {"SharedAccessKeyName=Root;SharedAccessKey=«" + random(base64Only, 43) + "=»"},
		"password": {
			"DB_PASSWORD=«kX9#mQ2$vL»", `"password": "«kX9#mQ2$vL»"`, `{\"password\":\"«kX9#mQ2$vL»\"}`, "password: «kX9mQ2vL»", "PGPASSWORD='«kX9#mQ2$vL»' psql",
			"--password «kX9mQ2vL»", "--db-password=«kX9mQ2vL»", `config["password"] = "«kX9#mQ2!»"`, "Server=x;Uid=y;Pwd=1;Password=«kX9mQ2vL»;",
			"smtp_pass = «kX9#mQ2$vL»", `passphrase := "«kX9#mQ2$vL»"`, "export MYSQL_PWD=«kX9mQ2vL»", "password: «a9B7$#fG3&Z1»",
			"pwd=«kX9mQ2vL»", "DB_PASSWORD=«Summer2026!»", "password: «Autumn2025?x»", "<password>«Summer2026!»</password>", "curl -s -u bob:«Summer2026!» https://git.corp.io", `curl --user 'bob:«kX9mQ2vL»' x`,
			"mysql -u root -p«kX9#mQ2vL» shop", "sshpass -p '«kX9mQ2vL»' ssh bob@x", "machine git.corp.io login bob password «kX9mQ2vL»", "machine git.corp.io\n  login bob\n  password «Summer2026!»",
			"CREATE USER 'x'@'%' IDENTIFIED BY '«Summer2026!»';", "identified with caching_sha2_password by '«kX9mQ2vL»'", "ALTER ROLE x WITH PASSWORD '«kX9mQ2vL»'",
			`\npassword=«kX9mQ2vL»`, `password: str = "«kX9#mQ2$vL»"`, `'password' => '«kX9#mQ2$vL»'`,
		},
		"mailgun-key": {
			`mg := mailgun.New("corp.io", "«` + random(hexOnly, 32) + "-7c1e0b9a-" + random(hexOnly, 8) + `»")`,
			"MAILGUN_KEY=«" + random(hexOnly, 32) + "-7c1e0b9a-" + random(hexOnly, 8) + "»",
		},
		"secret":  {"CLIENT_SECRET=«" + random(alnum, 32) + "»", `clientSecret: "«` + random(alnum+"~.", 34) + `»"`, "SECRET_KEY_BASE=«" + random(hexOnly, 64) + "»"},
		"token":   {"authtoken=«" + random(alnum, 40) + "»", "ACCESS_TOKEN=«" + random(alnum, 40) + "»", `"refresh_token":"«` + random(alnum, 40) + `»"`, "https://x.io/?access_token=«" + random(alnum, 24) + "»&x=1"},
		"api-key": {"apikey=«" + random(alnum, 32) + "»", "accesskey: «" + random(alnum, 32) + "»", "API_KEY=«" + random(hexOnly, 32) + "»", "X-Api-Key: «" + random(alnum, 32) + "»", "aws_secret_access_key = «" + random(base64Only, 40) + "»", "«sk-" + random(alnum, 48) + "»"},
	}
	for _, line := range strings.Split(strings.TrimSpace(prefixed), "\n") {
		f := strings.Fields(line)
		alphabet, n := map[string]string{"alnum": alnum, "lower": lowerLetters + digitsOnly, "hex": hexOnly, "base32": base32Only, "base64": base64Only}[f[2]], 0
		for _, c := range f[3] {
			n = 10*n + int(c-'0')
		}
		prefix := strings.ReplaceAll(f[1], "·", " ")
		all[f[0]] = append(all[f[0]], "«"+prefix+random(alphabet, n)+"»")
	}
	return all
}

// prefixed are kinds, prefixes, and what follows them.
const prefixed = `
aws-access-key AKIA base32 16
aws-access-key ASIA base32 16
aws-bedrock-key ABSK base64 120
google-api-key AIza alnum 35
google-oauth-secret GOCSPX- alnum 28
google-oauth-token ya29. alnum 80
google-refresh-token 1//0 alnum 60
digitalocean-token dop_v1_ hex 64
heroku-key HRKU- alnum 40
tailscale-key tskey-auth- alnum 30
fly-token FlyV1·fm2_ base64 80
terraform-token kx8Vz2Qw9Lm3Rt.atlasv1. alnum 67
vault-token hvs. alnum 90
databricks-token dapi hex 32
pulumi-token pul- hex 40
planetscale-token pscale_tkn_ alnum 43
supabase-key sbp_ hex 40
supabase-key sb_secret_ alnum 31
github-token ghp_ alnum 36
github-token ghs_ alnum 36
github-token github_pat_ alnum 82
gitlab-token glpat- alnum 20
npm-token npm_ alnum 36
pypi-token pypi-AgEIcHlwaS5vcmc alnum 150
rubygems-key rubygems_ hex 48
crates-token cio alnum 32
docker-token dckr_pat_ alnum 27
buildkite-token bkua_ hex 40
circleci-token CCIPAT_ alnum 60
sentry-token sntrys_ alnum 120
atlassian-token ATATT3 alnum 180
anthropic-key sk-ant-api03- alnum 95
anthropic-key sk-ant-oat01- alnum 95
openai-key sk-proj- alnum 120
openrouter-key sk-or-v1- hex 64
huggingface-token hf_ alnum 34
groq-key gsk_ alnum 52
xai-key xai- alnum 80
perplexity-key pplx- alnum 48
replicate-token r8_ alnum 37
langsmith-key lsv2_pt_ hex 43
tavily-key tvly-dev- alnum 32
nvidia-key nvapi- alnum 64
slack-token xoxb-2314353452-2314353453- alnum 24
slack-token xapp-1-A0 alnum 60
stripe-key sk_live_ alnum 24
stripe-key rk_test_ alnum 99
webhook-secret whsec_ alnum 32
square-token sq0atp- alnum 22
shopify-token shpat_ hex 32
linear-key lin_api_ alnum 40
notion-key ntn_ alnum 46
figma-token figd_ alnum 40
newrelic-key NRAK- alnum 27
grafana-token glsa_ alnum 41
doppler-token dp.pt. alnum 43
age-key AGE-SECRET-KEY-1 base32 58
azure-client-secret kX98Q~ alnum 34
slack-token xoxc-2314353452-2314353453-2314353454- hex 64
slack-token xoxd- alnum 120
discord-token MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ. alnum 27
twilio-key SK hex 32
mailgun-key key- hex 32
notion-key secret_ alnum 43
airtable-token patk3Jx9Qw7Zt2Vb8. hex 64
hubspot-token pat-na1-7c1e0b9a-4f3d-4e21-9c58- hex 12
pinecone-key pcsk_4kX9m_ alnum 63
neon-key napi_ alnum 64
netlify-token nfp_ alnum 36
render-key rnd_ alnum 28
vercel-token vcp_ alnum 56
dynatrace-token dt0c01.KX9MQ2VL7ZT3RWP8YB4NHDGC. base32 64
onepassword-token ops_eyJ alnum 400
facebook-token EAA alnum 170
square-token EAAA alnum 60
artifactory-key AKCp alnum 69
nuget-key oy2 lower 43
gitlab-token GR1348941 alnum 20
bitbucket-password ATBB alnum 32
elevenlabs-key sk_ hex 48
langfuse-key sk-lf-7c1e0b9a-4f3d-4e21-9c58- hex 12
cerebras-key csk- alnum 48
mapbox-token sk.eyJ1IjoiY29ycDEyIiwiYSI6ImNseDh2. alnum 60
braintree-token access_token$production$4kx9mq2vl7zt3rw8$ hex 32
duffel-token duffel_live_ alnum 43
twitter-token AAAAAAAAAAAAAAAAAAAAAKx93%3D alnum 80
coppice-token cop_ base32 52
`
