package filesystem

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// certified is a backend that uses the Secret with this name.
type certified struct {
	backend.Backend
	secret string
}

func (c certified) CertificateSecret(*v1alpha1.FileSystem) string { return c.secret }

// certificateUntil is a certificate that expires at a time, as PEM.
func certificateUntil(g *WithT, key *ecdsa.PrivateKey, ends time.Time) []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-100 * 24 * time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestACertificateIsSaidToExpireThirtyDaysAhead(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	keyOf := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	good := certificateUntil(g, key, now.Add(90*day))
	for what, c := range map[string]struct {
		content      []byte
		reason, says string
	}{
		"it is good":                            {content: good},
		"it is good for a day more than thirty": {content: certificateUntil(g, key, now.Add(31*day))},
		"it expires within thirty days": {certificateUntil(g, key, now.Add(29*day)), v1alpha1.ReasonCertificateExpires, "the certificate expires in 29 days, on 2026-12-22; put a new one and its key into the Secret: " +
			"kubectl -n storage create secret tls certificate --cert=FILE --key=FILE"},
		"one of its chain expires":    {slices.Concat(good, certificateUntil(g, key, now.Add(7*day))), v1alpha1.ReasonCertificateExpires, "in 7 days, on 2026-11-30"},
		"it has expired":              {certificateUntil(g, key, now.Add(-day)), v1alpha1.ReasonCertificateExpired, "the certificate expired on 2026-11-22"},
		"there is none in the Secret": {[]byte("hello"), v1alpha1.ReasonCertificateUnusable, "there is no certificate in it"},
		"its key is another one's":    {certificateUntil(g, stranger, now.Add(90*day)), v1alpha1.ReasonCertificateUnusable, "private key does not match"},
		"there is no Secret":          {nil, v1alpha1.ReasonCertificateUnusable, "there is no Secret certificate"},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			before := v1alpha1.CertificateStatus{SHA256: "before", NotAfter: metav1.NewTime(now.Add(90 * day))}
			fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "hive"}}
			fs.Status.Certificate = &before
			builder := fake.NewClientBuilder()
			if c.content != nil {
				builder = builder.WithObjects(&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "certificate"}, Data: map[string][]byte{corev1.TLSCertKey: c.content, corev1.TLSPrivateKeyKey: keyOf},
				})
			}
			r := Reconciler{Client: builder.Build()}
			fault, err := r.certificate(t.Context(), certified{secret: "certificate"}, fs)
			g.Expect(err).NotTo(HaveOccurred())
			describeCertificate(certified{secret: "certificate"}, fs, fault, now)
			said := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionCertificateLasts)
			if c.reason == "" {
				g.Expect(said).To(BeNil())
			} else {
				g.Expect(said).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.says))))
			}
			if c.reason == v1alpha1.ReasonCertificateUnusable {
				g.Expect(*fs.Status.Certificate).To(Equal(before), "no server restarts for a certificate that can't be used")
			} else {
				g.Expect(fs.Status.Certificate.SHA256).To(HaveLen(64), "another certificate is noticed by its hash")
			}
		})
	}
	t.Run("none is asked for any more", func(t *testing.T) {
		g := NewWithT(t)
		fs := &v1alpha1.FileSystem{}
		fs.Status.Certificate = &v1alpha1.CertificateStatus{SHA256: "before"}
		fault, err := (&Reconciler{}).certificate(t.Context(), certified{}, fs)
		g.Expect(fault, err).To(BeEmpty())
		g.Expect(fs.Status.Certificate).To(BeNil())
	})
}
