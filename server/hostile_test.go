package server_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

func TestNumbersOfAnySize(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	for _, n := range []int{2_000_000_000, math.MaxInt32, math.MaxInt - 1, math.MaxInt} {
		for path, status := range map[string]int{
			"/v1/sessions?limit=%d":                            200,
			"/v1/sessions?page=%d":                             422,
			"/v1/sessions?page=2&limit=%d":                     422,
			"/v1/sessions?page=%[1]d&limit=%[1]d":              422,
			"/v1/suggest/sessions?limit=%d":                    200,
			"/v1/search?query=otters&limit=%d":                 200,
			"/v1/search?query=otters&offset=%d":                200,
			"/v1/search?query=otters&limit=%[1]d&offset=%[1]d": 200,
			"/v1/sessions/" + url.PathEscape("@") + "%d":       404,
			"/v1/sessions/" + id + "/entries?last=%d":          200,
			"/v1/sessions/" + id + "/requests?last=%d":         200,
			"/v1/sessions/" + id + "/entries?all=true&last=%d": 200,
		} {
			path := fmt.Sprintf(path, n)
			if a := s.ask("GET", path, ""); a.status != status {
				t.Errorf("GET %s: %d %s", path, a.status, a.body)
			}
		}
		for path, body := range map[string]string{
			"context": fmt.Sprintf(`{"window": {"tokens": %[1]d, "bytes": %[1]d, "images": %[1]d, "strict": true}}`, n),
			"compact": fmt.Sprintf(`{"dry_run": true, "keep_tokens": %d}`, n),
		} {
			if a := s.ask("POST", "/v1/sessions/"+id+"/"+path, body); a.status >= 500 {
				t.Errorf("POST %s %s: %d %s", path, body, a.status, a.body)
			}
		}
	}
}

// TestNegativeNumbersAreRefused: one that slips in must not become everything. It asks for
// every number of every operation.
func TestNegativeNumbersAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	names, asked := s.names(), make(map[string]bool)
	for _, r := range requests {
		op := home.OperationNamed(r.operation)
		for _, field := range reflect.VisibleFields(op.Request) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			kind := field.Type
			for kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			if kind.Kind() != reflect.Int && kind.Kind() != reflect.Int64 || kind == reflect.TypeFor[home.Age]() ||
				name == "from" { // which counts from the end then
				continue
			}
			method, _, _ := strings.Cut(op.Route, " ")
			path, body := names.Replace(r.path), names.Replace(r.body)
			if method == http.MethodGet {
				at, err := url.Parse(path)
				if err != nil {
					t.Fatal(err)
				}
				query := at.Query()
				query.Set(name, "-5")
				at.RawQuery = query.Encode()
				path = at.String()
			} else {
				body = strings.Replace(strings.TrimSuffix(strings.TrimSpace(body), "}")+`, "`+name+`": -5}`, "{,", "{", 1)
			}
			asked[name] = true
			if p := want[server.Problem](s, 422, method, path, body); p.Kind != home.KindInvalid || p.Field != name {
				t.Errorf("%s %s %s: %+v", method, path, body, p)
			}
		}
	}
	for _, name := range []string{"limit", "last", "offset", "page", "after", "keep_tokens", "max_count"} {
		if !asked[name] {
			t.Errorf("no operation has %s", name)
		}
	}
}

func TestOnlyContentMayBeLarge(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	large := strings.Repeat(" ", 1<<20)
	if a := s.ask("POST", "/v1/sessions/"+id+"/context", `{"model": [`+large+`]}`); a.status != 413 {
		t.Errorf("a context: %d %s", a.status, a.body)
	}
	if a := s.ask("POST", "/v1/sessions/"+id+"/entries", hello+large); a.status != 200 {
		t.Errorf("an append: %d %s", a.status, a.body)
	}
}
