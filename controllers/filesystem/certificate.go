package filesystem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// expiresSoon is how long before its end a certificate counts as about to expire.
const expiresSoon = 30 * 24 * time.Hour

// certificate copies the certificate in the user's Secret to the status of a FileSystem. A certificate that can't be read or used changes
// nothing there, so that no server restarts for it; fault is then the reason.
func (r *Reconciler) certificate(ctx context.Context, b backend.Backend, in backend.Input) (fault string, err error) {
	fs, name := in.FileSystem, certificateSecret(b, in.FileSystem)
	if name == "" {
		fs.Status.Certificate = nil
		return "", nil
	}
	const needed = "; the server can't start again without it"
	var secret corev1.Secret
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: fs.Namespace, Name: name}, &secret); {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("there is no Secret %s%s", name, needed), nil
	case err != nil:
		return "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	found, err := readCertificate(secret.Data, r.Clock.Now())
	if err != nil {
		return fmt.Sprintf("the Secret %s has no certificate that can be used: %s%s", name, err, needed), nil
	}
	recorded, host := fs.Status.Certificate, b.(backend.Certified).CertifiedHost
	_, lacks := host(in, found)
	if lacks != "" {
		fault = fmt.Sprintf("the certificate in the Secret %s %s, so that the tools refuse the server", name, lacks)
	}
	if _, before := host(in, recorded); lacks != "" && recorded != nil && before == "" {
		return fault, nil // the running server can still be verified
	}
	fs.Status.Certificate = recordCertificate(found, recorded, in.Pods)
	return fault, nil
}

// recordCertificate returns the record of a certificate that replaces another one. Earlier certificates stay trusted until a server runs
// that started with the new one. Otherwise a server with an earlier certificate would count as away, and nothing would show that the
// filesystem is healthy enough for the restart.
func recordCertificate(found, recorded *v1alpha1.CertificateStatus, pods []backend.Pod) *v1alpha1.CertificateStatus {
	out := *found
	runs := slices.ContainsFunc(pods, func(p backend.Pod) bool { return p.Ready && !p.Terminating && p.Certificate == out.SHA256 })
	switch {
	case recorded == nil || runs:
	case recorded.SHA256 == out.SHA256:
		out.TrustedBefore = recorded.TrustedBefore
	default:
		out.TrustedBefore = without(recorded.Trusted+recorded.TrustedBefore, out.Trusted)
	}
	return &out
}

// maxTrusted bounds v1alpha1.CertificateStatus.Trusted and TrustedBefore, and maxNames its Names.
const (
	maxTrusted = 4096
	maxNames   = 16
	// fewNames is how many DNS names are recorded of a certificate with more than maxNames. The tools need only one.
	fewNames = 4
)

// without returns the certificates in a PEM text that another text lacks, each once and in their order, up to the limit of the record.
func without(text, other string) string {
	var out strings.Builder
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		one := string(pem.EncodeToMemory(block))
		if !strings.Contains(other, one) && !strings.Contains(out.String(), one) && out.Len()+len(one) <= maxTrusted {
			out.WriteString(one)
		}
	}
	return out.String()
}

// readCertificate reads a Secret of the type kubernetes.io/tls, whose key ca.crt may hold the authority. It refuses a certificate that the
// operator's own clients could not verify with the certificates that it returns as trusted. It does not check the name.
func readCertificate(data map[string][]byte, now time.Time) (*v1alpha1.CertificateStatus, error) {
	content := data[corev1.TLSCertKey]
	ends, err := endOf(content)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(content, data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the Secret
	}
	leaf := pair.Leaf
	if now.Before(leaf.NotBefore) {
		return nil, fmt.Errorf("it is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	authority := data[corev1.ServiceAccountRootCAKey]
	if len(bytes.TrimSpace(authority)) == 0 {
		authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	}
	roots, others := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("its ca.crt has no certificate")
	}
	others.AppendCertsFromPEM(content)
	if now.After(ends) {
		now = ends // describeCertificate reports an expired one
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: others, CurrentTime: now})
	if err != nil {
		return nil, fmt.Errorf("its ca.crt does not prove it: %w", err)
	}
	var anchors strings.Builder
	for _, chain := range chains {
		anchors.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[len(chain)-1].Raw}))
	}
	trusted := without(anchors.String(), "")
	if trusted == "" {
		return nil, fmt.Errorf("its authority is longer than %d bytes", maxTrusted)
	}
	names := slices.Clone(leaf.DNSNames)
	if len(names)+len(leaf.IPAddresses) > maxNames {
		names = names[:min(len(names), fewNames)]
	}
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	names = slices.DeleteFunc(names, func(name string) bool { return len(name) > validation.DNS1123SubdomainMaxLength })
	sum := sha256.Sum256(content)
	return &v1alpha1.CertificateStatus{
		SHA256: hex.EncodeToString(sum[:]), NotAfter: metav1.NewTime(ends), Trusted: trusted, Names: names[:min(len(names), maxNames)],
	}, nil
}

// endOf returns when the first certificate of a chain expires.
func endOf(chain []byte) (ends time.Time, err error) {
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return ends, err
		}
		if ends.IsZero() || c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
	}
	if ends.IsZero() {
		return ends, errors.New("there is no certificate in it")
	}
	return ends, nil
}

// describeCertificate sets the condition CertificateLasts, which exists, with the status false, while the certificate expires within 30
// days, has expired, or can't be used.
func describeCertificate(b backend.Backend, fs *v1alpha1.FileSystem, fault string, now time.Time) {
	reason, message, c := "", "", fs.Status.Certificate
	switch {
	case fault != "":
		reason, message = v1alpha1.ReasonCertificateUnusable, fault+"; "
	case c == nil:
	case !now.Before(c.NotAfter.Time):
		reason, message = v1alpha1.ReasonCertificateExpired, fmt.Sprintf("the certificate expired on %s; ",
			c.NotAfter.UTC().Format(time.DateOnly))
	case c.NotAfter.Sub(now) < expiresSoon:
		reason, message = v1alpha1.ReasonCertificateExpires, fmt.Sprintf("the certificate expires in %s, on %s; ",
			days(c.NotAfter.Sub(now)), c.NotAfter.UTC().Format(time.DateOnly))
	}
	if reason == "" {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionCertificateLasts)
		return
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionCertificateLasts, metav1.ConditionFalse,
		reason, message+fmt.Sprintf("put a new one and its key into the Secret: kubectl -n %s create secret tls %s --cert=FILE --key=FILE "+
			"--dry-run=client -o yaml | kubectl apply -f -; the server then restarts by itself", fs.Namespace, certificateSecret(b, fs)))
}

// days formats the whole days of a duration for a sentence.
func days(d time.Duration) string {
	switch n := int(d.Hours() / 24); n {
	case 0:
		return "less than a day"
	case 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", n)
	}
}

// certificateSecret returns the name of the user's Secret with the certificate; empty if the filesystem has none.
func certificateSecret(b backend.Backend, fs *v1alpha1.FileSystem) string {
	if own, ok := b.(backend.Certified); ok {
		return own.CertificateSecret(fs)
	}
	return ""
}
