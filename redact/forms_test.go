package redact_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/redact"
)

const someUUID = "7c1e0b9a-4f3d-4e21-9c58-0d6a1b2c3d4e"

// forms are the ways in which services and programs write down their secrets. The secret is
// what stands between the marks.
func forms() []string {
	hex32, hex40, hex64 := random(hexOnly, 32), random(hexOnly, 40), random(hexOnly, 64)
	return []string{
		// Addresses.
		"redis://:«k3Yz9pQw»@cache", "redis://:«hunter2hunter2»@cache:6379/0", "redis://:«k3Yz9pQw»@host", "REDIS_URL=redis://:«Kx93kdk2»@cache.corp.io:6379", "rediss://default:«" + random(alnum, 32) + "»@x.upstash.io:6379",
		"redis://:«" + hex32 + "»@10.0.0.7:6379",
		"https://«" + hex32 + "»@o447951.ingest.sentry.io/5429219", "SENTRY_DSN=https://«" + hex32 + "»@sentry.corp.io/12", "https://«" + hex32 + "»:«" + hex32 + "»@sentry.corp.io/2",
		// UUIDs that only a name gives away.
		"HEROKU_API_KEY=«" + someUUID + "»", "//registry.npmjs.org/:_authToken=«" + someUUID + "»", "SNYK_TOKEN=«" + someUUID + "»", "CODECOV_TOKEN=«" + someUUID + "»", "RAILWAY_TOKEN=«" + someUUID + "»",
		`"api_key": "«` + someUUID + `»"`, "X-API-Key: «" + someUUID + "»", "CLIENT_SECRET=«" + someUUID + "»",
		// Names.
		"_auth=«c3ZjOkt4OCNwcSEydkw=»", "//npm.corp.io/:_auth = «c3ZjOkt4OCNwcSEydkw=»", "NPM_CONFIG__AUTH=«c3ZjOkt4OCNwcSEydkw=»", "NPM_CONFIG__AUTH=«" + random(alnum, 40) + "»", "npm_config__auth=«" + random(alnum, 40) + "»",
		"APP_KEY=base64:«" + random(base64Only, 43) + "=»", `'key' => 'base64:«` + random(base64Only, 43) + `=»'`,
		"SECRET_KEY_BASE=«" + random(hexOnly, 128) + "»", "secret_key_base: «" + random(hexOnly, 128) + "»", "SECRET_KEY=«" + random(alnum, 50) + "»", "SECRET_KEY = '«django-insecure-" + random(alnum, 50) + "»'",
		"Authorization: token «" + hex40 + "»", `curl -H "Authorization: token «` + hex40 + `»" x`, `"Authorization": "Token «` + random(alnum, 40) + `»"`, "Authorization: ApiKey «" + random(alnum, 40) + "»",
		"X-Auth-Key: «" + random(hexOnly, 37) + "»", "DATADOG_APP_KEY=«" + hex40 + "»", "DD_APP_KEY=«" + hex40 + "»", "DD-APPLICATION-KEY: «" + hex40 + "»", "dd_app_key: «" + hex40 + "»",
		"otpauth://totp/Corp:bob?secret=«JBSWY3DPEHPK3PXP»&issuer=Corp", "otpauth://totp/x?issuer=Corp&secret=«" + random(base32Only, 32) + "»",
		"db.pass = «kX9mQ2vL»", "db.pass=«kX9#mQ2vL»", "spring.datasource.pass=«kX9mQ2vLz»", "mail.smtp.pass: «kX9mQ2vL»", "psk=\"«kX9mQ2vL4z»\"", "    psk=«" + hex64 + "»", "wpa_psk=«kX9mQ2vL4z»",
		"AZURE_DEVOPS_EXT_PAT=«" + random(alnum, 52) + "»", "ALGOLIA_ADMIN_KEY=«" + hex32 + "»", "MEILI_MASTER_KEY: «" + random(alnum, 40) + "»",
		"SESSION_COOKIE=«" + random(alnum, 40) + "»", "session_cookie: «" + random(alnum, 40) + "»", "AWS_SESSION=«" + random(base64Only, 90) + "»", "AWS_SESSION_TOKEN=«" + random(base64Only, 300) + "»", "AWS_SESSION_TOKEN=«FwoGZXIvYXdzEJr//////////wEaD" + random(base64Only, 300) + "»",
		"password=«hunter2hunter2»", "DB_PASSWORD=«hunter2hunter2»", `"password": "«hunter2hunter2»"`, "password: «hunter2hunter2»",
		`"db_password":"«Qk9xz&Lm2%v7!TzRs4»"`, `{"db_password":"«Qk9xz&Lm2%v7!TzRs4»"}`, `{\"db_password\":\"«Qk9xz&Lm2%v7!TzRs4»\"}`,
		"<password>«Summer2026!»</password>", `'password' => '«kX9#mQ2$vL»'`, "password => '«kX9mQ2vL»'",
		// Tokens that their form gives away.
		"«sk.eyJ1IjoiY29ycCIsImEiOiJ" + random(lowerLetters+digitsOnly, 24) + "." + random(alnum, 22) + "»",
		"«access_token$production$" + random(lowerLetters+digitsOnly, 16) + "$" + hex32 + "»",
		"«duffel_live_" + random(alnum+"_-", 43) + "»", "«duffel_test_" + random(alnum+"_-", 43) + "»",
		"«AAAAAAAAAAAAAAAAAAAAA" + random(alnum, 30) + "%3D" + random(alnum, 50) + "»",
	}
}

// Whatever way a service writes its secrets, they are found, alone, in JSON, and in JSON within
// JSON, by any program that writes it.
func TestFindsTheForms(t *testing.T) {
	t.Parallel()
	for _, marked := range forms() {
		text, secrets := marked, []string{}
		for strings.Contains(text, "«") {
			before, rest, _ := strings.Cut(text, "«")
			secret, after, _ := strings.Cut(rest, "»")
			text, secrets = before+secret+after, append(secrets, secret)
		}
		for carrier, carried := range map[string]string{
			"plain": text, "lines": "one\n" + text + "\ntwo", "JSON": asJSON(map[string]string{"x": text}), "JSON in JSON": asJSON(asJSON(map[string]string{"x": text})),
			"a listing in JSON": asJSON(map[string]string{"x": asJSON(map[string]string{"out": eachLine(text, ".env:%d:%s")})}),
			"three times JSON":  asJSON(asJSON(asJSON(text))),
		} {
			cleaned, found := redact.Bytes([]byte(carried))
			for _, secret := range secrets {
				end := secret[max(0, len(secret)-6):]
				if len(found) == 0 || strings.Contains(string(cleaned), secret) || strings.Contains(string(cleaned), end) {
					t.Errorf("%s: %.200q became %.200q", carrier, carried, cleaned)
				}
			}
			if again, found := redact.Bytes(cleaned); found != nil {
				t.Errorf("%s: %q became %q", carrier, cleaned, again)
			}
		}
	}
}

// encoders are the ways in which programs write a text as a JSON string. Some escape more than
// they need to.
var encoders = map[string]func(text string) string{
	"few escapes":       func(text string) string { return encoded(text, "") },
	"slashes":           func(text string) string { return strings.ReplaceAll(encoded(text, ""), "/", `\/`) },
	"slashes by number": func(text string) string { return encoded(text, "/") },
	"quotes":            func(text string) string { return encoded(text, "\"'`<>&+\\") },
	"all but words":     func(text string) string { return encoded(text, notWords) },
	"everything":        func(text string) string { return encoded(text, notWords+alnum) },
}

const notWords = "/:@=<>&'`\"\\+-_.#$%!?~, {}()\n"

// encoded returns a text as a JSON string in which some characters are escaped by number, every
// other one with capitals.
func encoded(text, byNumber string) string {
	out := []byte{'"'}
	for i := range len(text) {
		switch c := text[i]; {
		case strings.IndexByte(byNumber, c) >= 0:
			out = fmt.Appendf(out, []string{`\u%04x`, `\u%04X`}[i%2], c)
		case c == '\n':
			out = append(out, `\n`...)
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// However programs escape what they write, and however often, no secret hides behind it. What
// is replaced is the secret with all of its escapes, so JSON stays JSON.
func TestEscapesHideNothing(t *testing.T) {
	t.Parallel()
	all := forms()
	for _, of := range samples() {
		all = append(all, of...)
	}
	missed := make(map[string]int)
	for i, marked := range all {
		text := strings.NewReplacer("«", "", "»", "").Replace(marked)
		for first, inner := range encoders {
			once := `{"x":` + inner(text) + `}`
			carried := map[string]string{first + " in text": "see " + inner(text) + " there", first: once}
			for second, outer := range encoders {
				if second == "everything" {
					continue // no program that puts JSON into JSON does
				}
				twice := `{"y":` + outer(once) + `}`
				carried[first+" in "+second] = twice
				carried[first+" in "+second+" in text"] = "see " + twice + " there"
			}
			for how, text := range carried {
				cleaned, found := redact.Bytes([]byte(text))
				if left := meaning(string(cleaned)); len(found) == 0 || hasAny(left, marked) {
					if missed[how]++; missed[how] < 3 {
						t.Errorf("%d, %s: %.300q became %.300q", i, how, text, cleaned)
					}
				}
				if json.Valid([]byte(text)) && !json.Valid(cleaned) {
					t.Errorf("%s: %.200q is no JSON any more: %.200q", how, text, cleaned)
				}
				if again, found := redact.Bytes(cleaned); found != nil {
					t.Errorf("%s: %q became %q", how, cleaned, again)
				}
			}
		}
	}
}

// meaning undoes all escapes, in a way that is nobody else's.
func meaning(text string) string {
	for {
		before := text
		text = byNumber.ReplaceAllStringFunc(text, func(escape string) string {
			n, _ := strconv.ParseUint(escape[2:], 16, 16)
			return string(rune(n))
		})
		text = strings.NewReplacer(`\\`, `\`, `\/`, "/").Replace(text)
		if text == before {
			return text
		}
	}
}

var byNumber = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// hasAny reports whether a text has the end of one of the secrets that are marked in another.
func hasAny(text, marked string) bool {
	for strings.Contains(marked, "«") {
		_, rest, _ := strings.Cut(marked, "«")
		secret, after, _ := strings.Cut(rest, "»")
		if strings.Contains(text, secret[max(0, len(secret)-6):]) {
			return true
		}
		marked = after
	}
	return false
}
