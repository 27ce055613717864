// Package objectstore uploads, downloads, lists and removes objects in a bucket of an S3 object store.
package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	_ "golang.org/x/crypto/x509roots/fallback" // the node binary's image contains no certificates
)

// S3 is a location in an object store.
type S3 struct {
	// Endpoint is the URL of the store, without a path.
	Endpoint string
	// Bucket is the bucket's name. Prefix of the keys and Region of the bucket may be empty.
	Bucket, Prefix, Region string
	// Credentials is the directory with the files accessKey and secretKey. It also holds ca.crt if a private authority issued the store's
	// certificate.
	Credentials string
}

// attempts limits how often a request is made while the store does not answer or returns a server error, which takes about half a minute.
// More attempts make the client's pauses overflow.
const attempts = 30

// CheckEndpoint refuses anything but a store's URL.
func (s S3) CheckEndpoint() error {
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" ||
		strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
		return fmt.Errorf("%q is no URL of a host, such as https://s3.example.org:9000", s.Endpoint)
	}
	return nil
}

// Bucket is a location in an object store with a client. All names are relative to the prefix of the location.
type Bucket struct {
	S3
	client *minio.Client
}

// Object is an object in a bucket.
type Object struct {
	Name string
	// Size is in bytes.
	Size int64
}

// Open reads the credentials, which are kept only in their files and in this process. It does not contact the store.
func (s S3) Open() (*Bucket, error) {
	if err := s.CheckEndpoint(); err != nil {
		return nil, err
	}
	client, err := s.newClient()
	if err != nil {
		return nil, err
	}
	return &Bucket{s, client}, nil
}

// URL returns the URL of an object as tools for object stores write it.
func (b *Bucket) URL(name string) string { return fmt.Sprintf("s3://%s/%s", b.Bucket, b.key(name)) }

func (b *Bucket) key(name string) string { return path.Join(b.Prefix, name) }

// Put uploads an object of this many bytes. The object appears completely or not at all, and replaces one of the same name.
func (b *Bucket) Put(ctx context.Context, name string, content io.Reader, size int64) error {
	_, err := b.client.PutObject(ctx, b.Bucket, b.key(name), content, size, minio.PutObjectOptions{ContentType: contentType(name)})
	return b.failed(ctx, "put", name, err)
}

// Get opens an object. The error contains fs.ErrNotExist if there is none. The caller closes it.
func (b *Bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.Bucket, b.key(name), minio.GetObjectOptions{})
	if err == nil {
		if _, err = object.Stat(); err == nil {
			return object, nil
		}
		_ = object.Close() // nothing was read
	}
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, fmt.Errorf("%s of %s: %w", b.URL(name), b.Endpoint, fs.ErrNotExist)
	}
	return nil, b.failed(ctx, "get", name, err)
}

// List returns all objects below a directory of names, at any depth.
func (b *Bucket) List(ctx context.Context, directory string) ([]Object, error) {
	var out []Object
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // an error that ends the loop also ends the listing
	all := minio.ListObjectsOptions{Prefix: b.key(directory) + "/", Recursive: true}
	for object := range b.client.ListObjectsIter(ctx, b.Bucket, all) {
		if object.Err != nil {
			return nil, b.failed(ctx, "list", directory, object.Err)
		}
		name := object.Key
		if b.Prefix != "" {
			name = strings.TrimPrefix(name, path.Clean(b.Prefix)+"/")
		}
		out = append(out, Object{name, object.Size})
	}
	return out, nil
}

// Remove removes an object. A missing object is no error.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	return b.failed(ctx, "remove", name, b.client.RemoveObject(ctx, b.Bucket, b.key(name), minio.RemoveObjectOptions{}))
}

// failed describes the failed operation and the remedy.
func (b *Bucket) failed(ctx context.Context, what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("can't %s %s at %s: %w", what, b.URL(name), b.Endpoint, explain(ctx, err))
}

func (s S3) newClient() (*minio.Client, error) {
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
		return nil, fmt.Errorf("the endpoint %q of the object store: %w", s.Endpoint, err)
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

// transport trusts public authorities and those in the file ca.crt.
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

// secret reads one file of the credentials. Values in a Secret often end with a newline.
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

// explain adds advice to an error of the store.
func explain(ctx context.Context, err error) error {
	answer := minio.ToErrorResponse(err)
	advice := ""
	switch answer.Code {
	case "NoSuchBucket":
		advice = "make the bucket, or name another"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		advice = "mend accessKey and secretKey in the Secret"
	case "AccessDenied":
		advice = "let the owner of the access key put objects there, or what else was tried"
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

// contentType returns the content type of a file by its name.
func contentType(name string) string {
	if kind := mime.TypeByExtension(filepath.Ext(name)); kind != "" {
		return kind
	}
	return "application/octet-stream"
}
