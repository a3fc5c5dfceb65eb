package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/redact"
)

// carriers are the ways in which a secret gets into a conversation: what people and
// tools put around it.
var carriers = map[string]func(text string) string{
	"plain":       func(text string) string { return text },
	"prose":       func(text string) string { return "here you are: " + text + "\nplease keep it safe." },
	"shell":       func(text string) string { return "export SOME_VALUE=" + text + "\n" },
	"environment": func(text string) string { return "DEBUG=1\nSOME_VALUE=" + text + "\nPORT=80\n" },
	"quoted":      func(text string) string { return `const value = "` + text + `";` },
	"YAML":        func(text string) string { return "app:\n  some_value: " + text + "\n  port: 80\n" },
	"member":      func(text string) string { return asJSON(map[string]string{"some_value": text}) },
	"JSON in JSON": func(text string) string {
		return asJSON(map[string]string{"in": asJSON(map[string]string{"out": text})})
	},
	"header":          func(text string) string { return "curl -H 'X-Some-Header: " + text + "' https://api.corp.io/v1" },
	"listing":         func(text string) string { return eachLine("app:\n"+text+"\nport: 80", "%6d→%s") },
	"cat -n":          func(text string) string { return eachLine("app:\n"+text, "%6d\t%s") },
	"grep -n":         func(text string) string { return eachLine(text, ".env:%d:%s") },
	"quotation":       func(text string) string { return margined("> ", text) },
	"added":           func(text string) string { return margined("+", text) },
	"removed":         func(text string) string { return margined("-", text) },
	"Markdown":        func(text string) string { return "use this:\n```\n" + text + "\n```\n" },
	"code":            func(text string) string { return "set `" + text + "` and go on" },
	"table":           func(text string) string { return "| name | value |\n|---|---|\n| some | " + text + " |" },
	"grep --color":    func(text string) string { return eachLine(text, ".env:%[1]d:\x1b[01;31m\x1b[K%[2]s\x1b[m\x1b[K") },
	"colour in part":  colourMiddle,
	"escaped colours": func(text string) string { return strings.ReplaceAll(colourMiddle(text), "\x1b", `\u001b`) },
	"carriage return": func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") + "\r\n" },
}

func asJSON(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}

// eachLine formats each line with its number.
func eachLine(text, format string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = fmt.Sprintf(format, i+1, lines[i])
	}
	return strings.Join(lines, "\n")
}

func margined(with, text string) string {
	return with + strings.ReplaceAll(text, "\n", "\n"+with)
}

// colourMiddle colours a part of a text, as grep does with what it found.
func colourMiddle(text string) string {
	n := min(4, len(text)/2)
	return "\x1b[1m" + text[:n] + "\x1b[m\x1b[K" + text[n:] + "\x1b[0m"
}

// leaked reports whether a text still has a secret. Of one with several lines it is
// enough that one of them is there, whatever is before it.
func leaked(text, secret string) bool {
	text = string(redact.Uncoloured([]byte(text)))
	for line := range strings.SplitSeq(secret, "\n") {
		line = strings.TrimSpace(strings.ReplaceAll(line, `\n`, ""))
		if len(line) >= 8 && !strings.HasPrefix(line, "-----") && strings.Contains(text, line) {
			return true
		}
	}
	return false
}

// shapes are what samples does not have: what is left of secrets that were cut, and secrets
// inside other things.
func shapes() map[string][]string {
	key := privateKey("PRIVATE KEY", "\n")
	_, noBegin, _ := strings.Cut(key, "\n")
	rsa := "MIIEpAIBAAKCAQEA" + random(base64Only, 48)
	return map[string][]string{
		"the end of a key": {"«" + noBegin + "»"},
		"a key's lines":    {"«" + rsa + "\n" + random(base64Only, 64) + "\n" + random(alnum, 64) + "»"},
		"kubeconfig":       {"client-key-data: «" + base64.StdEncoding.EncodeToString([]byte(key)) + "»"},
		"user of a URL":    {"https://«ghp_" + random(alnum, 36) + "»@git.corp.io/x.git", "https://oauth2:«glpat-" + random(alnum, 20) + "»@git.corp.io/x.git"},
	}
}

// Whatever carries a secret, it is found. The few that are not are known; more than three
// in a hundred are too many.
func TestSecretsAreFoundInWhateverCarriesThem(t *testing.T) {
	t.Parallel()
	cases, missed := 0, []string{}
	all := samples()
	maps.Copy(all, shapes())
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		for i, marked := range all[kind] {
			text, secret := unmark(t, marked)
			for _, carrier := range slices.Sorted(maps.Keys(carriers)) {
				cases++
				carried := carriers[carrier](text)
				cleaned, _ := redact.Bytes([]byte(carried))
				if leaked(string(cleaned), secret) {
					missed = append(missed, fmt.Sprintf("%s %d in %s: %q became %q", kind, i, carrier, carried, cleaned))
				}
				if again, found := redact.Bytes(cleaned); found != nil {
					t.Errorf("%s %d in %s: %q became %q", kind, i, carrier, cleaned, again)
				}
			}
		}
	}
	found := 100 * float64(cases-len(missed)) / float64(cases)
	t.Logf("%d of %d cases are found: %.1f %%", cases-len(missed), cases, found)
	if found < 97 {
		for _, m := range missed {
			t.Errorf("%.300s", m)
		}
	}
}

// What looks like a secret and is none raises no alarm, whatever carries it.
func TestNoAlarmInWhateverCarriesNoSecret(t *testing.T) {
	t.Parallel()
	uuid, digest := "7c1e0b9a-4f3d-4e21-9c58-0d6a1b2c3d4e", random(hexOnly, 64)
	for _, text := range []string{
		uuid, digest, "sha256:" + digest, random(hexOnly, 40), random(hexOnly, 32), "data:image/png;base64,iVBORw0KGgo" + random(base64Only, 800),
		"EAAA" + random(base64Only, 300), "MIIDdzCCAl+gAwIBAgIE" + random(base64Only, 44), "MIIBCgKCAQEA" + random(base64Only, 52),
		`password = os.Getenv("DB_PASSWORD_2")`, "apikey: str", "authtoken: string", "accesskey = cfg.AccessKey", "apikey=None", `pwd := filepath.Dir(os.Args[0])`, "PWD=/home/bob/Work2", "pwd=~/Work2/x",
		"The password is checked against bcrypt2 hashes!", "the login and password fields of form2 are required.", "password: required2", `<password>secret</password>`, "<password> and <token>",
		"curl -u user:password https://api.corp.io", "curl -u $USER:$PASS x", "curl -u \"$CREDENTIALS\" x", "docker run -u 1000:1000 mysql -p3306:3306", "mysql -u root -p shop", "mysql -uroot -p$PASS", "mkdir -p Some2Dir",
		"a session is identified by 'session_id2' and a name", "each row is identified by its key", "IDENTIFIED BY '<password>'", "the machine has a login shell and a password prompt",
		`{"auth": "oauth2"}`, `"auth": "none"`, "path/to/patterns.go", "patch.2024", "cache-key-" + random(hexOnly, 32), "SKU0012345", "MTU is 1500.", "password!=other2", "user.password=user2!=nil",
		"password: config2?.value", "password: isAdmin2?left:right", "password=Login2?next=home", "password: Is2024?", "reset_password: app/Page2?tab",
		"mailgun " + uuid, "mailgun " + digest, "mailgun " + random(hexOnly, 32) + "-7c1e0b9a", "mailgun\n" + strings.Repeat("-", 200), "commit " + random(hexOnly, 32) + "-7c1e0b9a-" + random(hexOnly, 8),
		"-----END CERTIFICATE-----", "-----END PRIVATE KEY-----", "see LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t" + random(base64Only, 200),
	} {
		for carrier, carry := range carriers {
			if _, found := redact.Bytes([]byte(carry(text))); found != nil {
				t.Errorf("in %s: %.200q has %+v", carrier, carry(text), found)
			}
		}
	}
}
