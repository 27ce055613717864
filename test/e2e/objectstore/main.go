// Command objectstore serves an object store that speaks S3 and checks signatures (version 4), in memory, with one bucket and one key.
//
//	objectstore --listen :9000 --bucket NAME --access-key KEY --secret-key SECRET
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// listing treats an empty delimiter as none, like S3 (ListObjectsV2).
type listing struct{ *s3mem.Backend }

// ListBucket calls the backend's method.
func (l listing) ListBucket(
	ctx context.Context, bucket string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage,
) (*gofakes3.ObjectList, error) {
	if prefix != nil && prefix.Delimiter == "" {
		prefix.HasDelimiter = false
	}
	return l.Backend.ListBucket(ctx, bucket, prefix, page) //nolint:wrapcheck // it is the backend's own
}

func main() {
	listen := flag.String("listen", ":9000", "`ADDRESS` to listen on")
	bucket := flag.String("bucket", "vault", "`NAME` of the bucket")
	accessKey := flag.String("access-key", "", "`KEY` of who may use it")
	secretKey := flag.String("secret-key", "", "`SECRET` of that key")
	flag.Parse()
	if err := serve(*listen, *bucket, map[string]string{*accessKey: *secretKey}); err != nil {
		fmt.Fprintln(os.Stderr, "objectstore:", err)
		os.Exit(1)
	}
}

func serve(listen, bucket string, keys map[string]string) error {
	backend := s3mem.New()
	if err := backend.CreateBucket(context.Background(), bucket); err != nil {
		return fmt.Errorf("make the bucket %s: %w", bucket, err)
	}
	const headers = 10 * time.Second
	server := &http.Server{
		Addr: listen, ReadHeaderTimeout: headers, Handler: gofakes3.New(listing{backend}, gofakes3.WithV4Auth(keys)).Server(),
	}
	return server.ListenAndServe() //nolint:wrapcheck // it names the address
}
