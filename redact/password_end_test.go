package redact_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/redact"
)

// No tail of a password stays where it may be a part of it. What follows a password in
// a URL, a shell, a cookie or a connection string does.
func TestPasswordsEndWhereTheyDo(t *testing.T) {
	t.Parallel()
	const gone = "[REDACTED:password]"
	for _, text := range []string{ // the part in angle quotes is the password
		"DB_PASSWORD=«kX9#mQ2$&vL4pT»",
		"DB_PASSWORD=«kX9#mQ2$;vL4pT»",
		"DB_PASSWORD=«kX9#mQ2$;make»\nDEBUG=1",
		"DB_PASSWORD=«kX9#mQ2$;secret» # of staging",
		"DB_PASSWORD=«a&b;kX9#mQ2$»",
		"  - DB_PASSWORD=«kX9#mQ2$;word»\n",
		`a\nDB_PASSWORD=«kX9#mQ2$;word»\nb`,
		"spring.datasource.password: «kX9#mQ2$;vL&4pT»\nnext: 1",
		"DB_PASSWORD=«kX9#mQ2$&vL4pT==»",
		"the password=«kX9#mQ2$&vL4pT», please",
		"the password=«kX9#mQ2$;vL4pT» please",
		"mysql --password=«kX9#mQ2$;vL4pT»",

		"https://h.org/?password=«kX9#mQ2$»&user=bob&x",
		"https://h.org/?user=bob&password=«kX9#mQ2$»&debug HTTP/1.1",
		"password=«kX9#mQ2$»&user=bob",
		`<a href="?password=«kX9#mQ2$»&amp;user=bob">`,
		"password=«kX9#mQ2$»&quot;>",
		"DB_PASSWORD=«kX9#mQ2$» ./run",
		"export DB_PASSWORD=«kX9#mQ2$»;make",
		"DB_PASSWORD=«kX9#mQ2$»;make all",
		"DB_PASSWORD=«kX9#mQ2$»; make",
		"DB_PASSWORD=«kX9#mQ2$»&& make",
		"DB_PASSWORD=«kX9#mQ2$» && make",
		"DB_PASSWORD=«kX9#mQ2$»;./run.sh",
		"run --password=«kX9#mQ2$»;ls",
		"Server=x;Password=«kX9#mQ2$»;Encrypt=true",
		"Cookie: password=«kX9#mQ2$»; Path=/",
		`password="«kX9#mQ2$»";x`,
		"const password=«kX9#mQ2$»;\nreturn",
	} {
		before, rest, _ := strings.Cut(text, "«")
		secret, after, _ := strings.Cut(rest, "»")
		if got, _ := redact.Text(before + secret + after); got != before+gone+after {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"password=a&b", "password=a;b", "password=${A};make", "password=$1;shift", "password=;x", "password=&x"} {
		if got, _ := redact.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
