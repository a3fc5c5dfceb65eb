package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/coppice-dev/coppice/store"
)

// verdict says whether a statement was executed, by the error that it ended with.
type verdict int

const (
	final   verdict = iota // the server has answered
	refused                // the server did nothing, and may do it the next time
	lost                   // it may have done it, or not
)

// classify returns what an error means for the statement. Servers go away, for a restart or because
// another takes over; transactions get into each other's way: none of it is a reason to bother the
// caller.
func classify(err error) verdict {
	if err == nil {
		return final
	}
	var answer *pgconn.PgError
	var connect *pgconn.ConnectError
	var ours *store.Error
	switch {
	case errors.As(err, &ours), errors.Is(err, pgx.ErrNoRows), isUntrusted(err):
		return final
	case errors.As(err, &answer) && refusesParameter(answer):
		return final
	case errors.As(err, &answer):
		return classifyCode(answer.Code)
	case errors.As(err, &connect), errors.Is(err, puddle.ErrClosedPool), pgconn.SafeToRetry(err):
		return refused
	}
	return lost
}

// refusesParameter reports whether a connection was refused because of a setting that it brings, as
// PgBouncer does with those that it does not know. Trying again does not help.
func refusesParameter(answer *pgconn.PgError) bool {
	return answer.Code == "08P01" && strings.Contains(answer.Message, "startup parameter")
}

// classifyCode is classify for an answer, by its SQLSTATE.
func classifyCode(code string) verdict {
	switch code {
	case "40001", "40P01": // serialization failure, deadlock: rolled back
		return refused
	case "57P03", "53300": // starting or stopping, too many connections
		return refused
	case "57P01", "57P02", "57P05", "25P03": // the connection was ended, perhaps after the commit
		return lost
	}
	if code[:2] == "08" {
		return lost
	}
	return final
}

// read asks the server, again and again while it is away, until the caller or we lose patience.
func (s *Store) read(ctx context.Context, op, name string, ask func(ctx context.Context) error) error {
	_, err := s.insist(ctx, op, name, ask)
	return err
}

// write is read for statements that change something. Because the answer to one may get lost,
// do may be called again after it has succeeded, and must then find that out by itself. The
// caller's context is not passed on: a statement that is on its way when it ends would have an
// unknown outcome.
func (s *Store) write(ctx context.Context, op, name string, do func(ctx context.Context) error) error {
	if err := s.ready(ctx, op, name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience+statementTimeout)
	defer cancel()
	mayHave, err := s.insist(ctx, op, name, do)
	if mayHave && err == nil {
		_, err = s.insist(ctx, op, name, s.awaitStandbys)
	}
	if mayHave && err != nil {
		return &store.Error{Op: op, Name: name, Kind: store.ErrUnknown, Err: err, Hint: "open it again and look"}
	}
	return err
}

// awaitStandbys waits until everything that can be read is also on the synchronous standbys. A
// change whose answer was lost can be read before they have it, because the connection ended while
// the server waited for them. A commit that writes something waits for all commits before it.
func (s *Store) awaitStandbys(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO coppice.gates VALUES ($1, $2)
		ON CONFLICT (tenant, gate) DO UPDATE SET gate = excluded.gate`), s.tenant, gateStandbys)
	return err
}

// insist calls do until it has an answer. It also reports whether, without one or before the
// last one, the server may have executed the statement.
func (s *Store) insist(ctx context.Context, op, name string, do func(ctx context.Context) error) (mayHave bool, err error) {
	if err := s.ready(ctx, op, name); err != nil {
		return false, err
	}
	start := time.Now()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do(ctx)
		switch classify(err) {
		case final:
			return mayHave && err == nil, s.fail(op, name, err)
		case lost:
			mayHave = true
		}
		switch {
		case closed(s.done):
			return mayHave, &store.Error{Op: op, Name: name, Kind: store.ErrClosed}
		case ctx.Err() != nil:
			return mayHave, &store.Error{Op: op, Name: name, Err: ctx.Err()}
		case time.Since(start) > s.patience:
			return mayHave, errUnavailable(op, name, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-s.done:
		}
	}
}

func errUnavailable(op, name string, err error) error {
	return &store.Error{Op: op, Name: name, Kind: store.ErrUnavailable, Err: once(err), Hint: "check that the server runs and can be reached"}
}

// once returns an error without what the driver says twice: it tries each address with TLS and
// without.
func once(err error) error {
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return errors.New(strings.Replace(strings.Join(said, "; "), ":;", ":", 1))
}

// locate adds the server and the database to an error of opening.
func (t target) locate(err error) error {
	if e, ok := errors.AsType[*store.Error](err); ok && e.Path == "" {
		e.Path = t.where
	}
	return err
}

// fail makes an error of the driver one of the store. An error of the store is returned as it
// is.
func (s *Store) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var answer *pgconn.PgError
	var ours *store.Error
	if errors.As(err, &ours) {
		return err
	}
	e := &store.Error{Op: op, Name: name, Err: err}
	if isUntrusted(err) {
		e.Path, e.Hint = s.where, "check the host in the URL, sslrootcert and sslmode"
	}
	if !errors.As(err, &answer) {
		return e
	}
	if refusesParameter(answer) {
		e.Path, e.Err, e.Hint = s.where, answer, "if this is PgBouncer, let it pass over what it does not know: ignore_startup_parameters = "+strings.Join(slices.Sorted(maps.Keys(timeouts())), ", ")
		return e
	}
	switch answer.Code {
	case "55P03": // lock not available
		e.Kind, e.Err, e.Hint = store.ErrLocked, fmt.Errorf("not free after %v", lockTimeout), "try again later"
	case "57014": // the statement took too long, and was rolled back
		e.Kind, e.Hint = store.ErrUnavailable, "the server is slow or overloaded; try again later"
	case "42501": // insufficient privilege
		e.Err = fmt.Errorf("%w: the role %s may not do this: %s", fs.ErrPermission, s.role, answer.Message)
		e.Hint = "ask the owner of the database for it: " + s.sql(fmt.Sprintf("SELECT coppice.admit(%s, %s, true)", quote(s.role), quote(s.tenant)))
	case "25006": // a standby, or a database that its owner has made read-only
		e.Path, e.Err, e.Hint = s.where, fmt.Errorf("%w: %w", fs.ErrPermission, err), "write to the primary; if the URL names several servers, target_session_attrs=read-write finds it"
	case "28P01", "28000": // wrong password, no such role
		e.Path, e.Err, e.Hint = s.where, answer, "check the role in the URL, and its password in PGPASSWORD or ~/.pgpass"
	case "3D000": // no such database
		e.Path, e.Err, e.Hint = s.where, answer, "check the URL; createdb makes a database, and coppice migrate the tables in it"
	case "42P05", "26000": // a prepared statement is there already, or is not
		e.Hint = "behind PgBouncer before 1.21, add default_query_exec_mode=exec to the URL"
	case "42P01", "3F000": // no such table, no such schema
		e.Kind, e.Path, e.Err, e.Hint = store.ErrInvalid, s.where, fmt.Errorf("the database has no store in the schema %s", s.schema), "coppice migrate makes it"
	case "53100": // disk full
		e.Kind, e.Hint = store.ErrUnavailable, "nothing was written; make room on the disk of the server, then try again"
	case "53200": // out of memory
		e.Kind = store.ErrUnavailable
	}
	return e
}

// quote returns a text as SQL.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// isUntrusted reports whether the server has a certificate that cannot be verified.
func isUntrusted(err error) bool {
	_, is := errors.AsType[*tls.CertificateVerificationError](err)
	return is
}

// unique reports whether err says that there is such a row already.
func unique(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "23505"
}
