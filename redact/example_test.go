package redact_test

import (
	"fmt"

	"github.com/coppice-dev/coppice/redact"
)

func ExampleText() {
	// A key that looks real is put together here, so that no scanner of
	// repositories takes it for one.
	key := "ghp_" + "k3Jx9Qw7Zt2Vb8Nm4Rc6Ys1Ld5Hf0PgAu2Te"
	clean, found := redact.Text("export GITHUB_TOKEN=" + key + " # commit 9f2c1d7e0b")
	fmt.Println(clean)
	for _, f := range found {
		fmt.Println(f.Kind)
	}
	// Output:
	// export GITHUB_TOKEN=[REDACTED:github-token] # commit 9f2c1d7e0b
	// github-token
}

func ExampleJSON() {
	clean, found, err := redact.JSON([]byte(`{"dsn": "postgres://app:k9\u004cm2xQ8v@db/main", "id": "c0ffee"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(clean))
	fmt.Println(len(found), found[0].Kind)
	// Output:
	// {"dsn": "postgres://app:[REDACTED:url-password]@db/main", "id": "c0ffee"}
	// 1 url-password
}
