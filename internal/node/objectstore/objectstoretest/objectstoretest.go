// Package objectstoretest serves object stores for tests.
package objectstoretest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// Bucket and keys of each store.
const (
	Bucket    = "bench"
	AccessKey = "lab"
	SecretKey = "hush"
)

// Store is an object store in memory that checks signatures (version 4). URL is its endpoint.
type Store struct {
	*s3mem.Backend
	URL string
}

// Serve serves a store until the end of the test. before, if set, receives each request first and may answer it.
func Serve(t *testing.T, before http.HandlerFunc) Store {
	t.Helper()
	backend := s3mem.New()
	gomega.NewWithT(t).Expect(backend.CreateBucket(t.Context(), Bucket)).To(gomega.Succeed())
	serve := gofakes3.New(listing{backend}, gofakes3.WithV4Auth(map[string]string{AccessKey: SecretKey})).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &recorder{ResponseWriter: w}
		if before != nil {
			before(seen, r)
		}
		if !seen.answered {
			serve.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return Store{backend, server.URL}
}

// listing treats an empty delimiter as none, like S3 (ListObjectsV2).
type listing struct{ *s3mem.Backend }

// ListBucket calls the backend.
func (l listing) ListBucket(
	ctx context.Context, bucket string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage,
) (*gofakes3.ObjectList, error) {
	if prefix != nil && prefix.Delimiter == "" {
		prefix.HasDelimiter = false
	}
	return l.Backend.ListBucket(ctx, bucket, prefix, page) //nolint:wrapcheck // it is the backend's own
}

// recorder records whether a response was sent.
type recorder struct {
	http.ResponseWriter
	answered bool
}

// WriteHeader records the response.
func (r *recorder) WriteHeader(code int) {
	r.answered = true
	r.ResponseWriter.WriteHeader(code)
}

// Write records the response.
func (r *recorder) Write(data []byte) (int, error) {
	r.answered = true
	return r.ResponseWriter.Write(data)
}

// Credentials returns a directory like a mounted Secret, with the keys of the stores.
func Credentials(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range map[string]string{"accessKey": AccessKey, "secretKey": SecretKey + "\n"} {
		gomega.NewWithT(t).Expect(os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600)).To(gomega.Succeed())
	}
	return directory
}

// Object returns the content of an object.
func (s Store) Object(t *testing.T, key string) string {
	t.Helper()
	g := gomega.NewWithT(t)
	found, err := s.GetObject(t.Context(), Bucket, key, nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	content, err := io.ReadAll(found.Contents)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(found.Contents.Close()).To(gomega.Succeed())
	return string(content)
}

// Keys returns the sorted keys of all objects.
func (s Store) Keys(t *testing.T) []string {
	t.Helper()
	found, err := s.ListBucket(t.Context(), Bucket, &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	keys := map[string]bool{}
	for _, o := range found.Contents {
		keys[o.Key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}
