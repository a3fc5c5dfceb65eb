package redact_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/redact"
)

// unmark returns a sample without its marks, and the secret between them.
func unmark(t *testing.T, marked string) (text, secret string) {
	t.Helper()
	before, rest, ok := strings.Cut(marked, "«")
	secret, after, ok2 := strings.Cut(rest, "»")
	if !ok || !ok2 {
		t.Fatalf("no secret is marked in %q", marked)
	}
	return before + secret + after, secret
}

// Every kind is found, alone and in the middle of things, and nothing but the
// secret is replaced.
func TestFinds(t *testing.T) {
	t.Parallel()
	all := samples()
	around := map[string][2]string{
		"alone": {"", ""}, "prose": {"see here: ", " and go on."}, "lines": {"one\n", "\ntwo"}, "escaped": {`a\n`, `\nb`},
		"markup": {"<b>", "</b>"}, "list": {"x, ", ", y"},
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		t.Run(kind, func(t *testing.T) {
			for _, marked := range all[kind] {
				text, secret := unmark(t, marked)
				for name, a := range around {
					text, want := a[0]+text+a[1], a[0]+strings.Replace(text, secret, redact.Replacement(kind), 1)+a[1]
					got, found := redact.Text(text)
					if got != want || len(found) != 1 || found[0].Kind != kind || text[found[0].Start:found[0].End] != secret {
						t.Errorf("%s: %q became %q with %+v", name, text, got, found)
						continue
					}
					if strings.Contains(found[0].Preview, secret) {
						t.Errorf("the preview tells the secret: %q", found[0].Preview)
					}
				}
			}
		})
	}
}

func TestIsNoSecret(t *testing.T) {
	t.Parallel()
	hash, uuid := random(hexOnly, 64), "550e8400-e29b-41d4-a716-446655440000"
	tests := map[string][]string{
		"ordinary": {
			"", "a", "ab", "The token count is 42.", "commit " + random(hexOnly, 40), "sha256:" + hash, "etag: \"" + random(hexOnly, 32) + "\"", "id=" + uuid,
			"data:image/png;base64," + random(base64Only, 5000), "integrity=sha512-" + random(base64Only, 86) + "==",
			"go.sum h1:" + random(base64Only, 43) + "=", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5" + random(base64Only, 48), "toolu_01" + random(alnum, 22),
			"-----BEGIN PUBLIC KEY-----\n" + random(base64Only, 64) + "\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----\n" + random(base64Only, 64),
			"pk_live_" + random(alnum, 24), // Stripe's public keys
			"msg_" + random(alnum, 24), "call_" + random(alnum, 24), "resp_" + random(hexOnly, 48),
		},
		"stand-ins": {
			"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "api_key=YOUR_API_KEY", `api_key="YOUR_API_KEY_0123abcd"`, "token=<token>", "TOKEN=${TOKEN}",
			"password=xxxxxxxx", "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghp_" + lowerLetters + digitsOnly,
			"password: ********", "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE_12",
			"postgres://user:password@localhost/db", "postgres://postgres:postgres@db/x", "https://user:pass@example.com", "https://${USER}:${PASS}@host", "mysql://root:$PW@db",
			"http://bob:Kx93kdk2@api.example.com/", "amqp://guest:guest@rabbit", "cvs://:pserver:anoncvs@x.org/y", "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA...\n-----END RSA PRIVATE KEY-----",
			"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
			"Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "password = \"password123\"", `"password": "changeme1!"`, "DB_PASSWORD=secret123", "[REDACTED:password]: aB3#fG7!kL9@",
			"https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "SECRET=00000000000000000000000000000000",
		},
		"code": {
			"token = get_token(user1, True2)", "const token = response.data.token2", "password: str", "password: string;", "def f(password=None):", "self.password = password",
			`"max_tokens": 4096, "token_count": 123`, "tokenizer = Tokenizer2000Factory", `secret: process.env.CLIENT_SECRET_2`, `os.environ["API_KEY_1"]`,
			`token: "next-page-12"`, `nextToken: "` + random(alnum, 40) + `"`, `password_hash = "$2b$12$` + random(alnum, 53) + `"`, `{"password": {"type": "string"}}`,
			"PrivateKey: testRSA2048PrivateKey,", "private_key: ed25519.Ed25519PrivateKey", "PWD=/home/user1/Projects", "OLDPWD=/Home/User1/x", "password == other.password1", `label: "Password (8+ characters)"`, "API_KEY_NAME=stripe-prod-2024-live-key",
			`secret_name: "prod/db/Password2"`, "eos_token: '<|endoftext|>'", `secretName: my-tls-secret-2024-01`, "token=" + uuid, "image_token: sha256:" + hash, "password=" + uuid,
		},
		"names": {
			"token=" + uuid, "request_token: " + uuid, `"client_token": "` + uuid + `"`, "CSRF_TOKEN=" + uuid, "session_id=" + uuid, "secret: " + uuid, "API_KEY=00000000-0000-0000-0000-000000000000",
			"Authorization: token <token>", "Authorization: token YOUR_TOKEN_0123456789", "authorization: required", "the authorization header has a token", "Authorization: ${TOKEN_1234567890}", "authorization=none",
			"key_mgmt=WPA-PSK", "psk=<passphrase>", "psk: wpa2", "AP_PSK = C.NL80211_EXT_FEATURE_4WAY_PSK", "<code>psk: &#x3C;Buffer2|Type</code>", "password: &lt;Your2Word&gt;", "app_key: com.corp.app2.release", "application-key=reverse-proxy-2024", "aws_session = boto3.Session(region)", "DESKTOP_SESSION=ubuntu-wayland-2404",
			"session_cookie = PHPSESSID", "self.pass = first_pass2", "x.pass=true", "config__auth = basic", "password=aaaa1111aaaa1111", "password=user1user1user1", "passwords12345678",
			`password: "%s"`, `token="prefix-%v-suffix"`, "password=%v&user=%v", "{\"password\":\"%s\"}",
			"git+ssh://git@github.com/x/y.git", "docker://alpine@sha256:" + hash, "https://bob@git.corp.io/x.git", "https://" + random(hexOnly, 40) + ".corp.io/a@b", "redis://:password@host:6379", "redis://:$PW@host", "http://user:secret@server",
			"base64:" + random(base64Only, 44), "base64:" + random(base64Only, 30), "sk.eyJ", "duffel_test_x", strings.Repeat("A", 500), "access_token$production$x", "otpauth://totp/x?secret=<secret>&issuer=y",
			`"{\u003cpassword\u003esecret\u003c/password\u003e}"`, `a \u0026 b`, `'password' =\u003e 'password'`,
		},
		"almost": {
			"AKIA" + random(base32Only, 15), "AKIA" + random(base32Only, 17), "xAKIA" + random(base32Only, 16), "ghp_" + random(alnum, 20), "xghp_" + random(alnum, 36), "sk-" + random(lowerLetters, 40),
			"eyJ" + random(alnum, 40), "eyJ" + random(alnum, 40) + ".eyJ" + random(alnum, 20) + "." + random(alnum, 20), b64(`{"alg":"HS256"}`) + ".eyJ" + random(alnum, 20), b64(`{"alg":"x"}`) + ".eyJ" + random(alnum, 20) + ".abc",
			random(base64Only, 40) + "+AKIA" + random(base32Only, 16) + "/" + random(base64Only, 40), "hf_" + random(alnum, 12),
			"Bearer of bad news", "Basic arithmetic", "Basic " + random(alnum, 16), "Basic YWJjZGVmZ2hpamts", "basic dTp4", "see http://host:8080/path@v2", "user@host.org", "https://github.com:443/@scope/pkg",
			"123:AA" + random(alnum, 33), "sig=abc%3D", "https://hooks.slack.com/services/T1/B2", "SG." + random(alnum, 66), "-----BEGIN PRIVATE KEY", "-----BEGIN \nPRIVATE KEY-----", "-----BEGIN x PRIVATE KEY no dashes",
			"password=", "password:", "password", "--password", `password="`, `password="kX9#mQ2$vL`, "password=a1B", "x_pass", "pass=kX9mQ2vL", "first_pass=kX9mQ2vL",
		},
	}
	for name, texts := range tests {
		t.Run(name, func(t *testing.T) {
			for _, text := range texts {
				got, found := redact.Text(text)
				if got != text || found != nil {
					t.Errorf("%q became %q with %+v", text, got, found)
				}
			}
		})
	}
}

// What is cut off in the middle is still a secret.
func TestTruncatedPrivateKey(t *testing.T) {
	t.Parallel()
	key := privateKey("EC PRIVATE KEY", "\n")
	got, found := redact.Text("cat key.pem\n" + key[:200] + "\n[output truncated]")
	if want := "cat key.pem\n[REDACTED:private-key]\n[output truncated]"; got != want || len(found) != 1 {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSeveralInOneText(t *testing.T) {
	t.Parallel()
	gh, aws := "ghp_"+random(alnum, 36), "AKIA"+random(base32Only, 16)
	text := "GITHUB_TOKEN=" + gh + "\nAWS_ACCESS_KEY_ID=" + aws + "\nAPI_KEY=" + gh + "\n"
	got, found := redact.Text(text)
	want := "GITHUB_TOKEN=[REDACTED:github-token]\nAWS_ACCESS_KEY_ID=[REDACTED:aws-access-key]\nAPI_KEY=[REDACTED:github-token]\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var kinds []string
	for i, f := range found {
		kinds = append(kinds, f.Kind)
		if i > 0 && f.Start < found[i-1].End {
			t.Errorf("findings overlap or are out of order: %+v", found)
		}
	}
	if diff := cmp.Diff([]string{"github-token", "aws-access-key", "github-token"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got)\n%s", diff)
	}
}

// A secret that is glued to another is found, too, when that one is gone.
func TestGluedTogether(t *testing.T) {
	t.Parallel()
	basic := base64.StdEncoding.EncodeToString([]byte("svc:Kx8#pq!2vL"))
	age := "AGE-SECRET-KEY-1" + random(base32Only, 58)
	text := "one Authorization: Basic " + basic + age + " and two Authorization: Basic " + basic + age
	got, found := redact.Text(text)
	want := "one Authorization: Basic [REDACTED:basic-auth][REDACTED:age-key] and two Authorization: Basic [REDACTED:basic-auth][REDACTED:age-key]"
	if got != want || len(found) != 4 || text[found[2].Start:found[2].End] != basic || text[found[3].Start:found[3].End] != age {
		t.Errorf("got %q with %+v", got, found)
	}
}

// A scanner finds what it was told of wherever it is, also as it looks inside a
// JSON string; and tells what it finds.
func TestScannerKnows(t *testing.T) {
	t.Parallel()
	value := `open "sesame"` + "\n!"
	s := redact.NewScanner(redact.Known{Kind: "password", Value: value}, redact.Known{Kind: "pin", Value: "1234"})
	var seen []string
	s.Seen = func(kind, secret string) { seen = append(seen, kind+"="+secret) }
	got, _ := s.Text("say " + value + ` or "open \"sesame\"\n!" or 1234`)
	if want := `say [REDACTED:password] or "[REDACTED:password]" or 1234`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"password=" + value, `password=open \"sesame\"\n!`}, seen); diff != "" {
		t.Errorf("seen (-want +got)\n%s", diff)
	}
	if got, found := s.Text("nothing"); got != "nothing" || found != nil {
		t.Errorf("got %q, %v", got, found)
	}
}

// With SameLength nothing moves.
func TestSameLength(t *testing.T) {
	t.Parallel()
	s := &redact.Scanner{SameLength: true}
	gh := "ghp_" + random(alnum, 36)
	for in, want := range map[string]string{
		"a " + gh + " b":                        "a [REDACTED:github-token]" + strings.Repeat("*", 17) + " b",
		"password=kX9mQ2vL b":                   "password=******** b",
		"password=kX9mQ2vL " + gh + " b":        "password=******** [REDACTED:github-token]" + strings.Repeat("*", 17) + " b",
		`{"a":"\u0067hp_` + gh[4:] + `","b":1}`: `{"a":"[REDACTED:github-token]` + strings.Repeat("*", 22) + `","b":1}`,
	} {
		got, found := s.Bytes([]byte(in))
		if string(got) != want || len(found) == 0 {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if again, found := s.Bytes(got); string(again) != want || found != nil {
			t.Errorf("then it became %q with %v", again, found)
		}
	}
}

func TestKnownOnly(t *testing.T) {
	t.Parallel()
	s := redact.NewScanner(redact.Known{Kind: "a", Value: "open sesame"})
	found := s.Known([]byte("API_KEY=" + random(hexOnly, 32) + " open sesame"))
	if len(found) != 1 || found[0].Kind != "a" || found[0].Start != 41 {
		t.Errorf("found %+v", found)
	}
	if found := new(redact.Scanner).Known([]byte("open sesame")); found != nil {
		t.Errorf("found %+v", found)
	}
}

// The name before a secret may repeat it; the preview must not.
func TestPreviewNeverTells(t *testing.T) {
	t.Parallel()
	_, found := redact.Text("kX9mQ2vL_password=kX9mQ2vL")
	if len(found) != 1 || strings.Contains(found[0].Preview, "kX9mQ2vL") {
		t.Errorf("found %+v", found)
	}
	_, found = redact.Text(strings.Repeat("long_", 14) + "password=kX9mQ2vL")
	if len(found) != 1 || len(found[0].Preview) > 90 || !strings.Contains(found[0].Preview, "8 characters") {
		t.Errorf("found %+v", found)
	}
}

// Findings of one secret have the same number, wherever they stand and whatever
// told them; those of others do not.
func TestSameIsThatOfTheSecret(t *testing.T) {
	t.Parallel()
	one, other := "kX9#mQ2$vL", "aB3!nR7?wP"
	s := redact.NewScanner(redact.Known{Kind: "password", Value: one})
	found := s.Find([]byte("DB_PASSWORD=" + one + " and " + one + " and DB_PASSWORD=" + other))
	if len(found) != 3 || found[0].Same != found[1].Same || found[0].Same == found[2].Same {
		t.Errorf("%+v", found)
	}
}

// Bytes that are no UTF-8 hide no secret and stop nothing, wherever they are.
func TestBytesThatAreNoText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"identified \xff\xff by x":                  "identified \xff\xff by x",
		"identified \xff\xff BY 'Summer2026!' \xff": "identified \xff\xff BY '[REDACTED:password]' \xff",
		"otpauth://x?secret=jbswy3dpehpk3pxp\xff":   "otpauth://x?secret=[REDACTED:otp-secret]\xff",
	} {
		if got, _ := redact.Text(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
