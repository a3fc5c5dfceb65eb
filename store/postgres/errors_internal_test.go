package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-dev/coppice/store"
)

// What a person can mend, an error says how.
func TestHints(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"28P01": "PGPASSWORD", "28000": "role", "3D000": "createdb", "42P01": "coppice migrate",
		"42P05": "default_query_exec_mode=exec", "26000": "default_query_exec_mode=exec", "42501": "coppice.admit",
	} {
		err := (&Store{target: target{schema: defaultSchema}}).fail("open", "", &pgconn.PgError{Code: code})
		var e *store.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%s: %v", code, err)
		}
	}
	err := fmt.Errorf("connect: %w", &tls.CertificateVerificationError{Err: errors.New("unknown authority")})
	if classify(err) != final || !strings.Contains((&Store{}).fail("open", "", err).Error(), "sslrootcert") {
		t.Errorf("a certificate that nobody knows: %v", (&Store{}).fail("open", "", err))
	}
}
