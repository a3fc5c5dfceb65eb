package redact_test

import (
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
		"SESSION_COOKIE=«" + random(alnum, 40) + "»", "session_cookie: «" + random(alnum, 40) + "»", "AWS_SESSION=«" + random(base64Only, 90) + "»", "AWS_SESSION_TOKEN=«" + random(base64Only, 300) + "»",
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
