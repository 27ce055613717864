package export

import (
	"bytes"
	"context"
	"fmt"

	"parallelfs.dev/operator/internal/node/objectstore"
)

// S3 is a place in an object store.
type S3 = objectstore.S3

// check refuses an incomplete destination.
func check(s S3) error {
	if s == (S3{}) {
		return nil
	}
	for _, flag := range []struct{ name, value string }{
		{"--s3-endpoint", s.Endpoint}, {"--s3-bucket", s.Bucket}, {"--s3-credentials", s.Credentials},
	} {
		if flag.value == "" {
			return fmt.Errorf("%s is missing: an object store needs --s3-endpoint, --s3-bucket and --s3-credentials", flag.name)
		}
	}
	if err := s.CheckEndpoint(); err != nil {
		return fmt.Errorf("--s3-endpoint: %w", err)
	}
	return nil
}

// put uploads the files to the store.
func put(ctx context.Context, s S3, files []file) ([]string, error) {
	if s == (S3{}) {
		return nil, nil
	}
	bucket, err := s.Open()
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong with the place
	}
	var out []string
	for _, f := range files {
		if err := bucket.Put(ctx, f.name, bytes.NewReader(f.content), int64(len(f.content))); err != nil {
			return out, err //nolint:wrapcheck // it names the object and the store
		}
		out = append(out, bucket.URL(f.name))
	}
	return out, nil
}
