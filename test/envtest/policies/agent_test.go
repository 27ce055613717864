//go:build envtest

package policies_test

import (
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Messages to the agent of n1 about what it may not do.
const (
	ownInventory = "an agent writes only the NodeInventory that is named like its own node"
	ownStatus    = "an agent writes only the status of the StorageTargets of its own node"
	noNode       = "the token of this agent names no node"
)

// applyStatus applies an object's status as the agent does.
func applyStatus(t *testing.T, c client.Client, object client.Object) error {
	t.Helper()
	object = object.DeepCopyObject().(client.Object)
	object.SetManagedFields(nil)
	switch object := object.(type) {
	case *v1alpha1.StorageTarget:
		object.Status.KernelName = "nvme0n1"
		object.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "StorageTarget"}
	case *v1alpha1.NodeInventory:
		object.Status.Kernel.Release = "6.12"
		object.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeInventory"}
	}
	//nolint:staticcheck // the typed form needs generated apply configurations, which the API does not have
	return c.Status().Patch(t.Context(), object, client.Apply, client.FieldOwner("parallelfs-agent"), client.ForceOwnership)
}

func TestAnAgentSpeaksForItsOwnNodeAndNoOther(t *testing.T) {
	user(t, "the manager")
	g := NewWithT(t)
	for _, node := range []string{"n1", "n2"} {
		g.Expect(user(t, "an agent@"+node).Create(t.Context(), inventory(node))).To(Succeed())
	}
	own, other := made(t, target("own", "n1")), made(t, target("other", "n2"))

	for name, c := range map[string]struct {
		user string
		do   func(t *testing.T, c client.Client) error
		says string
	}{
		"it may make its own inventory": {"an agent@n3", func(t *testing.T, c client.Client) error {
			return c.Create(t.Context(), inventory("n3"), client.DryRunAll)
		}, ""},
		"it may write its own inventory": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return applyStatus(t, c, inventory("n1"))
		}, ""},
		"it may write the status of its own target": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return applyStatus(t, c, &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name}})
		}, ""},
		"it may not make the inventory of another node": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return c.Create(t.Context(), inventory("n4"), client.DryRunAll)
		}, ownInventory},
		"it may not have the API server choose a name": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return c.Create(t.Context(), &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{GenerateName: "n"}}, client.DryRunAll)
		}, ownInventory},
		"it may not write the inventory of another node": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return applyStatus(t, c, inventory("n2"))
		}, ownInventory},
		"it may not label the inventory of another node": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return c.Patch(t.Context(), inventory("n2"), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		}, ownInventory},
		"it may not write the status of another node's target": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return applyStatus(t, c, &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: other.Name}})
		}, ownStatus},
		"it has no right to approve its own plan": {"an agent@n1", func(t *testing.T, c client.Client) error {
			return c.Patch(t.Context(), own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"remove":true}}`)))
		}, "cannot patch resource"},
		"with that right, the policy still refuses": {"an agent allowed everything@n1", func(t *testing.T, c client.Client) error {
			return c.Patch(t.Context(), own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"remove":true}}`)))
		}, ownStatus},
		// Two policies refuse it, and the API server quotes one of them.
		"with that right, it still makes no target": {"an agent allowed everything@n1", func(t *testing.T, c client.Client) error {
			return c.Create(t.Context(), target("mine", "n1"), client.DryRunAll)
		}, "denied request"},
		"with that right, it still deletes no target": {"an agent allowed everything@n1", func(t *testing.T, c client.Client) error {
			return c.Delete(t.Context(), own.DeepCopy(), client.DryRunAll)
		}, "an agent deletes nothing"},
		"with that right, it still deletes no inventory": {"an agent allowed everything@n1", func(t *testing.T, c client.Client) error {
			return c.Delete(t.Context(), inventory("n1"), client.DryRunAll)
		}, "an agent deletes nothing"},
		"a token that names no node makes no inventory": {"an agent without a node", func(t *testing.T, c client.Client) error {
			return c.Create(t.Context(), inventory("n5"), client.DryRunAll)
		}, noNode},
		"a token that names no node writes no status": {"an agent without a node", func(t *testing.T, c client.Client) error {
			return applyStatus(t, c, &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name}})
		}, noNode},
		"a token whose node is empty is no better": {"an agent@", func(t *testing.T, c client.Client) error {
			return c.Create(t.Context(), inventory("n5"), client.DryRunAll)
		}, noNode},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := c.do(t, user(t, c.user))
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			g.Expect(err.Error()).To(ContainSubstring(c.says))
		})
	}
}

// The other tests set the content of a token; this one lets the API server create a token, as for the kubelet.
func TestTheTokenOfAnAgentsPodIsGoodForThePodsNode(t *testing.T) {
	g := NewWithT(t)
	c := user(t, "an administrator of the cluster")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-", Namespace: namespace},
		Spec: corev1.PodSpec{NodeName: "n1", ServiceAccountName: release + "-agent",
			Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
	}
	g.Expect(c.Create(t.Context(), pod)).To(Succeed())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: release + "-agent", Namespace: namespace}}
	g.Expect(c.SubResource("token").Create(t.Context(), serviceAccount, request)).To(Succeed())

	config := rest.AnonymousClientConfig(server.Config)
	config.BearerToken = request.Status.Token
	agent, err := client.New(config, client.Options{Scheme: server.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.IgnoreAlreadyExists(agent.Create(t.Context(), inventory("n1"), client.DryRunAll))).To(Succeed())
	g.Expect(agent.Create(t.Context(), inventory("n6"), client.DryRunAll)).To(MatchError(ContainSubstring(ownInventory)))

	request = &authenticationv1.TokenRequest{}
	g.Expect(c.SubResource("token").Create(t.Context(), serviceAccount, request)).To(Succeed())
	config.BearerToken = request.Status.Token
	anywhere, err := client.New(config, client.Options{Scheme: server.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(anywhere.Create(t.Context(), inventory("n6"), client.DryRunAll)).To(MatchError(ContainSubstring(noNode)))
}
