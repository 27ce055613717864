package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	_ "golang.org/x/crypto/x509roots/fallback" // the node binary's image holds nothing else, no certificates either
)

// S3 is a place in an object store.
type S3 struct {
	// Endpoint is the URL of the store, without a path.
	Endpoint string
	// Bucket, Prefix of the keys and Region of the bucket; the last two may be empty.
	Bucket, Prefix, Region string
	// Credentials is the directory of the files accessKey and secretKey, and ca.crt where the store's certificate is of an authority that
	// the world does not know.
	Credentials string
}

// attempts is how often a request is made that the store does not answer, or answers with an error of its own: about half a minute. More
// make the client's pauses overflow.
const attempts = 30

// check refuses half of a place.
func (s S3) check() error {
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
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" ||
		strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
		return fmt.Errorf("--s3-endpoint: %q is no URL of a host, such as https://s3.example.org:9000", s.Endpoint)
	}
	return nil
}

// put puts the files to the store.
func (s S3) put(ctx context.Context, files []file) ([]string, error) {
	if s == (S3{}) {
		return nil, nil
	}
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		key := path.Join(s.Prefix, f.name)
		_, err := client.PutObject(ctx, s.Bucket, key, bytes.NewReader(f.content), int64(len(f.content)),
			minio.PutObjectOptions{ContentType: contentType(f.name)})
		if err != nil {
			return out, fmt.Errorf("can't put s3://%s/%s to %s: %w", s.Bucket, key, s.Endpoint, s.explain(ctx, err))
		}
		out = append(out, fmt.Sprintf("s3://%s/%s", s.Bucket, key))
	}
	return out, nil
}

// client reads the credentials, which stand nowhere else than in their files and in this process.
func (s S3) client() (*minio.Client, error) {
	accessKey, err := s.secret("accessKey")
	if err != nil {
		return nil, err
	}
	secretKey, err := s.secret("secretKey")
	if err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("--s3-endpoint: %w", err)
	}
	transport, err := s.transport(endpoint.Scheme == "https")
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Secure: endpoint.Scheme == "https", Region: s.Region, MaxRetries: attempts,
		Transport: transport,
	})
	if err != nil {
		return nil, fmt.Errorf("can't use the object store %s: %w", s.Endpoint, err)
	}
	return client, nil
}

// transport trusts, besides the authorities of the world, those of the file ca.crt.
func (s S3) transport(secure bool) (*http.Transport, error) {
	out, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("can't use the object store %s: %w", s.Endpoint, err)
	}
	certificates, err := os.ReadFile(filepath.Join(s.Credentials, "ca.crt"))
	switch {
	case errors.Is(err, os.ErrNotExist) || !secure:
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("can't read the certificates of the object store: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("can't read the certificates of this machine: %w", err)
	}
	if !roots.AppendCertsFromPEM(certificates) {
		return nil, errors.New("the key ca.crt in the Secret of the object store holds no certificate in PEM")
	}
	out.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return out, nil
}

// secret reads one file of the credentials. What people put into a Secret often ends with a newline.
func (s S3) secret(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(s.Credentials, name))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("the Secret of the object store has no key %s; it needs accessKey and secretKey", name)
	} else if err != nil {
		return "", fmt.Errorf("can't read the credentials of the object store: %w", err)
	}
	value := strings.TrimSpace(string(content))
	if value == "" {
		return "", fmt.Errorf("the key %s in the Secret of the object store is empty", name)
	}
	return value, nil
}

// explain says what to do about an answer of the store.
func (s S3) explain(ctx context.Context, err error) error {
	answer := minio.ToErrorResponse(err)
	advice := ""
	switch answer.Code {
	case "NoSuchBucket":
		advice = "make the bucket, or name another"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		advice = "mend accessKey and secretKey in the Secret"
	case "AccessDenied":
		advice = "let the owner of the access key put objects there"
	case "AuthorizationHeaderMalformed", "PermanentRedirect":
		advice = "name the region of the bucket"
	case "RequestTimeTooSkewed":
		advice = "set the clock of the node, or that of the store"
	}
	if unknown := new(x509.UnknownAuthorityError); errors.As(err, unknown) {
		advice = "put the certificate of its authority into the Secret, as ca.crt"
	}
	switch {
	case advice != "" && answer.Code == "":
		return fmt.Errorf("%w; %s", err, advice)
	case advice != "":
		return fmt.Errorf("%w (%s); %s", err, answer.Code, advice)
	case answer.Code != "":
		return fmt.Errorf("%w (%s)", err, answer.Code)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: it took too long", err)
	}
	return err
}

// contentType of a file, by its name.
func contentType(name string) string {
	if kind := mime.TypeByExtension(filepath.Ext(name)); kind != "" {
		return kind
	}
	return "application/octet-stream"
}
