package filesystem

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// expiresSoon is how long before its end a certificate is said to expire.
const expiresSoon = 30 * 24 * time.Hour

// certificate records in the status of a FileSystem the certificate that the user's Secret has. One that can't be read or used changes
// nothing there, so that no server restarts for it: fault says what is wrong.
func (r *Reconciler) certificate(ctx context.Context, b backend.Backend, fs *v1alpha1.FileSystem) (fault string, err error) {
	name := certificateSecret(b, fs)
	if name == "" {
		fs.Status.Certificate = nil
		return "", nil
	}
	var secret corev1.Secret
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: fs.Namespace, Name: name}, &secret); {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("there is no Secret %s", name), nil
	case err != nil:
		return "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	content, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	ends, err := endOf(content)
	if err == nil {
		_, err = tls.X509KeyPair(content, key)
	}
	if err != nil {
		return fmt.Sprintf("the Secret %s has no certificate that can be used: %s", name, err), nil
	}
	sum := sha256.Sum256(content)
	fs.Status.Certificate = &v1alpha1.CertificateStatus{SHA256: hex.EncodeToString(sum[:]), NotAfter: metav1.NewTime(ends)}
	return "", nil
}

// endOf is when the first certificate of a chain expires.
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

// describeCertificate writes the condition CertificateLasts, which is there, and false, while the certificate expires within 30 days, has
// expired, or can't be used.
func describeCertificate(b backend.Backend, fs *v1alpha1.FileSystem, fault string, now time.Time) {
	reason, message, c := "", "", fs.Status.Certificate
	switch {
	case fault != "":
		reason, message = v1alpha1.ReasonCertificateUnusable, fault+"; the server can't start again without it; "
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

// days are the whole days of a duration, as a sentence has them.
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

// certificateSecret names the user's Secret with the certificate, empty for a filesystem that has none.
func certificateSecret(b backend.Backend, fs *v1alpha1.FileSystem) string {
	if own, ok := b.(backend.Certified); ok {
		return own.CertificateSecret(fs)
	}
	return ""
}
