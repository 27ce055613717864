package filesystem

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
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

// CertifiedHost is the first name.
func (c certified) CertifiedHost(_ backend.Input, s *v1alpha1.CertificateStatus) (host, lacks string) {
	if s == nil || len(s.Names) == 0 {
		return "", "has no name"
	}
	return s.Names[0], ""
}

// certificateUntil returns, as PEM, a certificate that expires at the given time.
func certificateUntil(g *WithT, key *ecdsa.PrivateKey, ends time.Time) []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"mgmtd.site"}, NotBefore: ends.Add(-100 * 24 * time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestACertificateIsReportedThirtyDaysBeforeItExpires(t *testing.T) {
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
		content         []byte
		reason, message string
	}{
		"it is good":                            {content: good},
		"it is good for a day more than thirty": {content: certificateUntil(g, key, now.Add(31*day))},
		"it expires within thirty days": {certificateUntil(g, key, now.Add(29*day)), v1alpha1.ReasonCertificateExpires, "the certificate expires in 29 days, on 2026-12-22; put a new one and its key into the Secret: " +
			"kubectl -n storage create secret tls certificate --cert=FILE --key=FILE"},
		"one of its chain expires":    {slices.Concat(good, certificateUntil(g, key, now.Add(7*day))), v1alpha1.ReasonCertificateExpires, "in 7 days, on 2026-11-30"},
		"it has expired":              {certificateUntil(g, key, now.Add(-day)), v1alpha1.ReasonCertificateExpired, "the certificate expired on 2026-11-22"},
		"there is none in the Secret": {[]byte("hello"), v1alpha1.ReasonCertificateUnusable, "there is no certificate in it"},
		"it is not valid yet":         {certificateUntil(g, key, now.Add(101*day)), v1alpha1.ReasonCertificateUnusable, "it is not valid before 2026-11-24T09:00:00Z"},
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
			r := Reconciler{Client: builder.Build(), Clock: clocktesting.NewFakePassiveClock(now)}
			fault, err := r.certificate(t.Context(), certified{secret: "certificate"}, backend.Input{FileSystem: fs})
			g.Expect(err).NotTo(HaveOccurred())
			describeCertificate(certified{secret: "certificate"}, fs, fault, now)
			condition := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionCertificateLasts)
			if c.reason == "" {
				g.Expect(condition).To(BeNil())
			} else {
				g.Expect(condition).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.message))))
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
		fault, err := (&Reconciler{}).certificate(t.Context(), certified{}, backend.Input{FileSystem: fs})
		g.Expect(fault, err).To(BeEmpty())
		g.Expect(fs.Status.Certificate).To(BeNil())
	})
}

// Issued returns the content of a Secret with a certificate for these names. The authority signs it; without one, it is self-signed.
func Issued(g Gomega, now time.Time, by *tls.Certificate, names ...string) (data map[string][]byte, pair tls.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mgmtd.site"}, DNSNames: names, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(90 * 24 * time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
	}
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	g.Expect(err).NotTo(HaveOccurred())
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	data = map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}),
	}
	pair, err = tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	g.Expect(err).NotTo(HaveOccurred())
	return data, pair
}

// proven reports whether a client that trusts the certificates of a status accepts a certificate for a name.
func proven(c *v1alpha1.CertificateStatus, pair tls.Certificate, name string) bool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(c.Trusted + c.TrustedBefore))
	_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: asked})
	return err == nil
}

func TestTheStatusHasTheTrustedCertificatesAndNoKey(t *testing.T) {
	g := NewWithT(t)
	_, authority := Issued(g, asked, nil, "ca.site")
	_, other := Issued(g, asked, nil, "ca.site")
	authorityPEM := func(c tls.Certificate) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw})
	}
	data, pair := Issued(g, asked, &authority, "mgmtd.site")
	_, next := Issued(g, asked, &authority, "mgmtd.site")
	_, stranger := Issued(g, asked, &other, "mgmtd.site")

	c, err := readCertificate(data, asked)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Names).To(Equal([]string{"mgmtd.site"}))
	g.Expect(c.Trusted + fmt.Sprint(c.Names)).NotTo(ContainSubstring("PRIVATE KEY"))
	g.Expect(proven(c, pair, "mgmtd.site")).To(BeTrue())
	g.Expect(proven(c, next, "mgmtd.site")).To(BeFalse(), "without ca.crt, this certificate is trusted, and no other")

	data[corev1.ServiceAccountRootCAKey] = slices.Concat(authorityPEM(other), authorityPEM(authority))
	c, err = readCertificate(data, asked)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proven(c, next, "mgmtd.site")).To(BeTrue(), "the authority proves the next one too")
	g.Expect(proven(c, next, "elsewhere.site")).To(BeFalse())
	g.Expect(proven(c, stranger, "mgmtd.site")).To(BeFalse(), "of the authorities in ca.crt, the one that signed it is trusted")

	data[corev1.ServiceAccountRootCAKey] = authorityPEM(other)
	_, err = readCertificate(data, asked)
	g.Expect(err).To(MatchError(ContainSubstring("its ca.crt does not prove it: x509: certificate signed by unknown authority")))
}

func TestARotationTrustsBothCertificatesUntilTheServerRunsWithTheNewOne(t *testing.T) {
	g := NewWithT(t)
	first, firstPair := Issued(g, asked, nil, "mgmtd.site")
	second, secondPair := Issued(g, asked, nil, "mgmtd.site")
	third, thirdPair := Issued(g, asked, nil, "mgmtd.site")
	nameless, _ := Issued(g, asked, nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "certificate"}}
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "hive"}}
	look := func(data map[string][]byte, running string) string {
		secret.Data = data
		r := Reconciler{Client: fake.NewClientBuilder().WithObjects(secret).Build(), Clock: clocktesting.NewFakePassiveClock(asked)}
		in := backend.Input{FileSystem: fs, Pods: []backend.Pod{{Component: "management", Ready: true, Certificate: running}}}
		fault, err := r.certificate(t.Context(), certified{secret: "certificate"}, in)
		g.Expect(err).NotTo(HaveOccurred())
		return fault
	}
	trusts := func(pairs ...tls.Certificate) {
		t.Helper()
		for i, pair := range []tls.Certificate{firstPair, secondPair, thirdPair} {
			g.Expect(proven(fs.Status.Certificate, pair, "mgmtd.site")).To(Equal(slices.ContainsFunc(pairs, func(p tls.Certificate) bool {
				return p.Leaf.Equal(pair.Leaf)
			})), "certificate %d", i+1)
		}
	}
	g.Expect(look(first, "")).To(BeEmpty())
	trusts(firstPair)
	one := fs.Status.Certificate.SHA256

	before := fs.Status.DeepCopy()
	g.Expect(look(second, one)).To(BeEmpty())
	trusts(firstPair, secondPair)
	after := fs.Status.DeepCopy()
	before.DeepCopyInto(&fs.Status) // the operator was killed before it wrote the status
	g.Expect(look(second, one)).To(BeEmpty())
	g.Expect(fs.Status).To(Equal(*after))
	g.Expect(look(second, one)).To(BeEmpty())
	trusts(firstPair, secondPair) // it waits for the restart

	g.Expect(look(third, one)).To(BeEmpty())
	trusts(firstPair, secondPair, thirdPair) // the Secret changed again, and the server may have any of them
	g.Expect(look(third, fs.Status.Certificate.SHA256)).To(BeEmpty())
	trusts(thirdPair)

	three := fs.Status.Certificate.SHA256
	g.Expect(look(nameless, three)).To(Equal("the certificate in the Secret certificate has no name, so that the tools refuse the server"))
	g.Expect(fs.Status.Certificate.SHA256).To(Equal(three), "no server restarts for a certificate that nobody can verify")
	fs.Status.Certificate.Names = nil
	g.Expect(look(nameless, three)).NotTo(BeEmpty())
	g.Expect(fs.Status.Certificate.SHA256).NotTo(Equal(three), "the one that runs can't be verified either")
	g.Expect(look(first, three)).To(BeEmpty())
	trusts(firstPair, thirdPair)
}
