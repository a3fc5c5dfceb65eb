package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/coppice-dev/coppice/store"
)

// address is where a bucket is.
type address struct {
	bucket, prefix   string
	endpoint, region string // "" means those of Amazon
}

// parseBucket takes the URL of a bucket apart. No error repeats it, since it may have a key by
// mistake.
func parseBucket(place string) (address, error) {
	fail := func(why string) (address, error) {
		return address{}, &store.Error{
			Op: "choose where blobs go", Kind: store.ErrInvalid, Err: errors.New(why),
			Hint: "give the whole path of a directory, s3://bucket/prefix?endpoint=https://host&region=name, or " + InDatabase,
		}
	}
	u, err := url.Parse(place)
	switch {
	case err != nil || u.Scheme != "s3" || u.Host == "" || u.Port() != "":
		return fail("it is neither a directory nor a bucket")
	case u.User != nil:
		return fail("keys do not belong in the URL: every program has its own in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	a := address{bucket: u.Host, prefix: strings.Trim(path.Clean(u.Path), "/.")}
	for name, values := range u.Query() {
		switch name {
		case "endpoint":
			a.endpoint = values[0]
		case "region":
			a.region = values[0]
		default:
			return fail(fmt.Sprintf("a bucket has no parameter %.80q", name))
		}
	}
	if a.endpoint != "" {
		u, err := url.Parse(a.endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/")+u.RawQuery != "" {
			return fail("the endpoint must look like https://host:port")
		}
		a.endpoint = u.Scheme + "://" + u.Host
	}
	return a, nil
}

func (a address) String() string {
	u := url.URL{Scheme: "s3", Host: a.bucket, Path: a.prefix}
	params := url.Values{}
	if a.endpoint != "" {
		params.Set("endpoint", a.endpoint)
	}
	if a.region != "" {
		params.Set("region", a.region)
	}
	u.RawQuery = params.Encode()
	return u.String()
}

// bucket is a backend in a bucket of S3 or of a server that speaks its protocol. A blob is an
// object, which such a server has whole or not at all, and durably when it says so.
type bucket struct {
	address
	store     *Store
	keys      string // what the key of each blob begins with
	core      minio.Core
	transport *http.Transport
}

func openBucket(s *Store, row backendRow) (blobBackend, error) {
	a, err := parseBucket(row.Place)
	if err != nil {
		return nil, err
	}
	b := &bucket{address: a, store: s, keys: path.Join(a.prefix, row.ID, s.tenantDir()) + "/"}
	secure, host := true, "s3.amazonaws.com"
	if a.endpoint != "" {
		var scheme string
		scheme, host, _ = strings.Cut(a.endpoint, "://")
		secure = scheme == "https"
	}
	if b.transport, err = minio.DefaultTransport(secure); err != nil {
		return nil, err
	}
	client, err := minio.New(host, &minio.Options{
		Secure: secure, Region: a.region, Transport: b.transport,
		MaxRetries: 1, // insist does that
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{},
			&credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: impatience}}, // most machines have no such server
		}),
	})
	if err != nil {
		return nil, &store.Error{Op: "open", Path: a.String(), Kind: store.ErrInvalid, Err: err}
	}
	b.core = minio.Core{Client: client}
	return b, nil
}

func (b *bucket) close() { b.transport.CloseIdleConnections() }

func (b *bucket) key(ref store.Ref) string {
	digits, _ := ref.Hex()
	return b.keys + digits
}

// How long one answer may take: a short one, and one for which a blob is sent or received.
const (
	answerTimeout   = 30 * time.Second
	transferTimeout = 10 * time.Minute
)

// ask asks the server, again and again while it is away: see insist.
func (b *bucket) ask(ctx context.Context, op string, timeout time.Duration, do func(ctx context.Context) error) error {
	return b.store.read(ctx, op, "", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return b.fail(op, do(ctx))
	})
}

// fail turns an answer of the server into an error of the store. Errors that may pass are returned
// as they are, for insist.
func (b *bucket) fail(op string, err error) error {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if err == nil || !ok || answer.StatusCode >= 500 {
		return err
	}
	e := &store.Error{Op: op, Path: b.String(), Err: err}
	switch answer.Code {
	case minio.NoSuchKey:
		e.Kind = store.ErrNotExist
	case minio.NoSuchBucket:
		e.Kind, e.Hint = store.ErrUnavailable, "make the bucket, or check its name and the endpoint"
	case "RequestTimeout", "SlowDown", "TooManyRequests", "RequestTimeTooSkewed":
		return err
	}
	if answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized {
		e.Err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
		e.Hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that may list the bucket, and read, write and delete objects"
	}
	return e
}

// size returns how long an object is, or -1 if there is none.
func (b *bucket) size(ctx context.Context, op string, ref store.Ref) (size int64, err error) {
	err = b.ask(ctx, op, answerTimeout, func(ctx context.Context) error {
		info, err := b.core.StatObject(ctx, b.bucket, b.key(ref), minio.StatObjectOptions{})
		size = info.Size
		return err
	})
	if errors.Is(err, store.ErrNotExist) {
		return -1, nil
	}
	return size, err
}

func (b *bucket) put(ctx context.Context, op string, ref store.Ref, data []byte) error {
	if size, err := b.size(ctx, op, ref); err != nil || size == int64(len(data)) {
		return err
	}
	// The server compares the content with the hash, which is the blob's name.
	digits, _ := ref.Hex()
	return b.ask(ctx, op, transferTimeout, func(ctx context.Context) error {
		_, err := b.core.PutObject(ctx, b.bucket, b.key(ref), bytes.NewReader(data), int64(len(data)), "", digits,
			minio.PutObjectOptions{DisableContentSha256: true}) // of each chunk
		return err
	})
}

func (b *bucket) get(ctx context.Context, op string, ref store.Ref) (data []byte, err error) {
	err = b.ask(ctx, op, transferTimeout, func(ctx context.Context) error {
		in, _, _, err := b.core.GetObject(ctx, b.bucket, b.key(ref), minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer in.Close()
		data, err = io.ReadAll(in)
		return err
	})
	return data, err
}

// list yields the blobs page by page.
func (b *bucket) list(ctx context.Context, op string) iter.Seq2[blob, error] {
	return func(yield func(blob, error) bool) {
		for last := ""; ; {
			var page []minio.ObjectInfo
			err := b.ask(ctx, op, answerTimeout, func(ctx context.Context) (err error) {
				page, err = b.page(ctx, last)
				return err
			})
			if err != nil {
				yield(blob{}, err)
				return
			}
			for _, object := range page {
				ref := store.Ref("sha256:" + strings.TrimPrefix(object.Key, b.keys))
				if digest(ref) != nil && !yield(blob{ref, object.Size}, nil) {
					return
				}
			}
			if len(page) < listed {
				return
			}
			last = page[len(page)-1].Key
		}
	}
}

func (b *bucket) page(ctx context.Context, last string) (page []minio.ObjectInfo, err error) {
	for object := range b.core.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.keys, Recursive: true, StartAfter: last, MaxKeys: listed}) {
		if page = append(page, object); object.Err != nil || len(page) == listed {
			return page, object.Err
		}
	}
	return page, ctx.Err()
}

func (b *bucket) delete(ctx context.Context, op string, ref store.Ref) (bool, error) {
	if size, err := b.size(ctx, op, ref); err != nil || size < 0 {
		return false, err
	}
	err := b.ask(ctx, op, answerTimeout, func(ctx context.Context) error {
		return b.core.RemoveObject(ctx, b.bucket, b.key(ref), minio.RemoveObjectOptions{})
	})
	return err == nil, err
}
