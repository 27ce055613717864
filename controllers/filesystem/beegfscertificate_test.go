//go:build envtest

package filesystem_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// certificateInUse returns the certificate that a management service reads when it starts; nil if there is none.
func (w *world) certificateInUse() []byte {
	w.t.Helper()
	tls := w.get().Spec.BeeGFS.TLS
	if tls == nil {
		return nil
	}
	var secret corev1.Secret
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: tls.Name}, &secret)).To(Succeed())
	return secret.Data[corev1.TLSCertKey]
}

// verifyManagement simulates how the tools in the management service's pod verify its certificate before their first request.
func (w *world) verifyManagement() error {
	if w.get().Spec.BeeGFS.TLS == nil {
		return nil
	}
	for _, pod := range w.pods() {
		if component(&pod) != "management" || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		var config corev1.ConfigMap
		if err := server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scratch-beegfs"}, &config); err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(config.Data["management-trust.pem"]))
		block, _ := pem.Decode(w.hive.presents[string(pod.UID)])
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		host := ""
		for _, alias := range pod.Spec.HostAliases {
			host = alias.Hostnames[0]
		}
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			return fmt.Errorf("tls: failed to verify certificate: %w", err)
		}
	}
	return nil
}

// certify puts a new certificate for a name into the Secret, signed by itself.
func (w *world) certify(name string) []byte {
	w.t.Helper()
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mgmtd"}}
	data, _ := filesystem.Issued(w, time.Now(), nil, name)
	key := client.ObjectKeyFromObject(&secret)
	if err := server.Client.Get(w.ctx, key, &secret); err != nil {
		secret.Type, secret.Data = corev1.SecretTypeTLS, data
		w.Expect(server.Client.Create(w.ctx, &secret)).To(Succeed())
		return data[corev1.TLSCertKey]
	}
	secret.Data = data
	w.Expect(server.Client.Update(w.ctx, &secret)).To(Succeed())
	return data[corev1.TLSCertKey]
}

func TestACertificateIsRotatedWhateverWriteTheOperatorIsKilledAfterAndNoOtherIsBelieved(t *testing.T) {
	w := newWorld(t)
	w.certify("mgmtd.site")
	w.beeGFS(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Version, fs.Spec.Clients = "8.3.1", nil
		fs.Spec.BeeGFS.TLS = &v1alpha1.SecretReference{Name: "mgmtd"}
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	management := func() (pod corev1.Pod) {
		for _, p := range w.pods() {
			if component(&p) == "management" {
				pod = p
			}
		}
		return pod
	}
	for _, each := range inEach {
		before, next := management(), w.certify("mgmtd.site")
		w.Expect(w.settleByDying(each, nil)).To(BeNumerically(">", 1))
		w.settle()
		after, status := management(), w.get().Status.Certificate
		w.Expect(after.UID).NotTo(Equal(before.UID))
		w.Expect(w.hive.presents[string(after.UID)]).To(Equal(next))
		w.Expect(after.Annotations).To(HaveKeyWithValue(podspec.CertificateAnnotation, status.SHA256))
		w.Expect(status.TrustedBefore).To(BeEmpty())
		w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	}
	w.Expect(w.hive.refusals).To(BeEmpty(), "the tools believed the management service all the time")

	stranger, _ := filesystem.Issued(w, time.Now(), nil, "mgmtd.site")
	w.hive.presents[string(management().UID)] = stranger[corev1.TLSCertKey]
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", Not(Equal(metav1.ConditionTrue))),
		HaveField("Message", ContainSubstring("x509: certificate signed by unknown authority"))))
}
