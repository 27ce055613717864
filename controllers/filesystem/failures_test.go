//go:build envtest

package filesystem_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
)

// tries makes the operator run some passes, some of which may fail.
func (w *world) tries(passes int) {
	w.t.Helper()
	c := server.Killable(w.t, -1)
	for range passes {
		_ = w.reconcile(c)
		w.runPods()
	}
}

func TestASecretOfAnEarlierFileSystemIsNamedInTheStatusWithTheStepThatItStops(t *testing.T) {
	w := newWorld(t)
	w.Expect(server.Client.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-moosefs", Namespace: w.namespace}, Data: map[string][]byte{"master.json": []byte("{}")},
	})).To(Succeed())
	w.fileSystem(nil)
	w.tries(3)
	w.Expect(w.condition(v1alpha1.ConditionReconciled)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", And(HavePrefix("apply the desired objects: "), ContainSubstring("Secret"), ContainSubstring("scratch-moosefs")))))
	w.Expect(w.ready()).NotTo(BeZero(), "what the filesystem is like is said all the same")
	w.Expect(server.Client.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "scratch-moosefs", Namespace: w.namespace}})).To(Succeed())
	w.alive = true
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionReconciled)).To(BeZero())
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue))
}

func TestARefusedStatusIsReportedAndChangesNothingElse(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	before := w.get().Status
	w.lost = []string{w.nodes[1] + ":/data/ssd0"}
	refusing := interceptor.NewClient(server.Killable(t, -1), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if fs, is := o.(*v1alpha1.FileSystem); is && len(fs.Status.Missing) > 0 {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "FileSystem"}, fs.Name, field.ErrorList{field.Invalid(field.NewPath("status"), "", "it is too long")})
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	})
	w.Expect(w.reconcile(refusing)).To(MatchError(ContainSubstring("it is too long")))
	w.Expect(w.condition(v1alpha1.ConditionReconciled)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", And(HavePrefix("this status is old: write the status: "), ContainSubstring("it is too long")))))
	after := w.get().Status
	meta.RemoveStatusCondition(&after.Conditions, v1alpha1.ConditionReconciled)
	w.Expect(after).To(Equal(before))
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionReconciled)).To(BeZero())
}

func TestANodeThatCanNotBeLabeledDelaysNothingElseAndIsReported(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	forbidding := interceptor.NewClient(server.Killable(t, -1), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if node, is := o.(*corev1.Node); is && node.Name == w.nodes[1] {
				return apierrors.NewForbidden(corev1.Resource("nodes"), node.Name, errors.New("a policy of the cluster"))
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	w.Expect(w.reconcile(forbidding)).To(MatchError(ContainSubstring("a policy of the cluster")))
	w.Expect(w.sets()).NotTo(BeEmpty(), "the daemons of the other nodes are made")
	w.Expect(w.condition(v1alpha1.ConditionReconciled)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", And(HavePrefix("label nodes: "), ContainSubstring(w.nodes[1])))))
}

func TestAMessageOfTheKubeletThatIsTooLongIsCut(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	for _, p := range w.pods() {
		if component(&p) == "chunkserver" && p.Spec.NodeName == w.nodes[1] {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "chunkserver", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: strings.Repeat("no such host ", 200)}}}}
			w.Expect(server.Client.Status().Update(w.ctx, &p)).To(Succeed())
		}
	}
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(And(HaveField("Status", metav1.ConditionTrue),
		HaveField("Message", ContainSubstring("ErrImagePull: no such host"))))
}

func TestAChangedPullPolicyReplacesTheJob(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.finishJobs()
	before := w.jobs()[0].UID
	w.pullPolicy = "Always"
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionReconciled)).To(BeZero())
	w.Expect(w.jobs()).To(HaveLen(1))
	w.Expect(w.jobs()[0].UID).NotTo(Equal(before))
	w.Expect(string(w.jobs()[0].Spec.Template.Spec.Containers[0].ImagePullPolicy)).To(Equal("Always"))
}

func TestAVariableThatAnAdmissionWebhookAddsIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	set := w.sets()[0]
	proxy := corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}
	set.Spec.Template.Spec.Containers[0].Env = append([]corev1.EnvVar{proxy}, set.Spec.Template.Spec.Containers[0].Env...)
	w.Expect(server.Client.Update(w.ctx, &set, client.FieldOwner("webhook"))).To(Succeed())
	c := server.Killable(t, -1)
	for range 3 {
		w.Expect(w.reconcile(c)).To(Succeed())
	}
	w.Expect(c.Writes()).To(BeEmpty())
	w.Expect(w.sets()[0].Spec.Template.Spec.Containers[0].Env).To(ContainElement(proxy))
}

func TestATolerationThatAnAdmissionWebhookAddsIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	toleration := `{"key":"lab","operator":"Exists"}`
	w.admit(t, func(set *appsv1.DaemonSet) []string {
		if len(set.Spec.Template.Spec.Tolerations) > 0 && set.Spec.Template.Spec.Tolerations[len(set.Spec.Template.Spec.Tolerations)-1].Key == "lab" {
			return nil
		}
		if len(set.Spec.Template.Spec.Tolerations) == 0 {
			return []string{`{"op":"add","path":"/spec/template/spec/tolerations","value":[` + toleration + `]}`}
		}
		return []string{`{"op":"add","path":"/spec/template/spec/tolerations/-","value":` + toleration + `}`}
	})
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	tolerations := w.sets()[0].Spec.Template.Spec.Tolerations
	w.Expect(tolerations).To(ContainElement(HaveField("Key", "lab")))
	w.Expect(len(tolerations)).To(BeNumerically(">", 1), "the list has an item of the operator, too")
	c := server.Killable(t, -1)
	for range 3 {
		w.Expect(w.reconcile(c)).To(Succeed())
	}
	w.Expect(c.Writes()).To(BeEmpty())

	w.Expect(server.Client.Patch(w.ctx, &w.sets()[0], client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/template/spec/tolerations/0/effect","value":"NoExecute"}]`)), client.FieldOwner("somebody"))).To(Succeed())
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(w.sets()[0].Spec.Template.Spec.Tolerations).To(Equal(tolerations), "what somebody else has made of the operator's is put right")
}

// admit makes a webhook change the DaemonSets of this test's namespace at their admission, by JSON patches.
func (w *world) admit(t *testing.T, change func(*appsv1.DaemonSet) []string) {
	t.Helper()
	hook := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		set := &appsv1.DaemonSet{}
		if err := errors.Join(json.NewDecoder(request.Body).Decode(&review), json.Unmarshal(review.Request.Object.Raw, set)); err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &kind, Patch: []byte("[" + strings.Join(change(set), ",") + "]"),
		}
		_ = json.NewEncoder(answer).Encode(review)
	}))
	t.Cleanup(hook.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + ".parallelfs.dev"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "daemonsets." + w.namespace + ".parallelfs.dev",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &hook.URL, CABundle: authority},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"daemonsets"}},
			}},
		}},
	}
	w.Expect(server.Client.Create(w.ctx, configuration)).To(Succeed())
	t.Cleanup(func() { w.Expect(server.Client.Delete(context.Background(), configuration)).To(Succeed()) })
}

func TestADeletionThatOrphansLeavesTheDaemonsAndEnds(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	sets, pods := len(w.sets()), len(w.pods())
	w.Expect(server.Client.Delete(w.ctx, w.get(), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(controllerutil.ContainsFinalizer(w.get(), v1alpha1.Finalizer)).To(BeFalse(), "only the garbage collector's own is left")
	w.Expect(w.sets()).To(HaveLen(sets))
	w.Expect(w.pods()).To(HaveLen(pods))
}

func TestADeletionEndsAlsoAfterItsChildrenWereOrphaned(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	for _, set := range w.sets() {
		set.OwnerReferences = nil
		w.Expect(server.Client.Update(w.ctx, &set)).To(Succeed())
	}
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(client.IgnoreNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}))).To(Succeed())
	w.Expect(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{})).NotTo(Succeed())
	w.Expect(w.sets()).NotTo(BeEmpty())
}

func TestTheProbeOfAPredecessorIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive, w.predecessor = true, "11111111-2222-3333-4444-555555555555"
	w.settle()
	w.Expect(w.get().Status.Metadata.Initialized).To(BeNil(), "its metadata is not this one's")
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("belongs to another FileSystem (uid \"11111111"))))
	w.predecessor = ""
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue))
}

func TestADaemonSetThatIsDeletedComesBackWhileANodeWaitsToJoin(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{"pool-of": w.namespace}
	})
	label := func(node string) {
		var n corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &n)).To(Succeed())
		n.Labels["pool-of"] = w.namespace
		w.Expect(server.Client.Update(w.ctx, &n)).To(Succeed())
	}
	label(w.nodes[0])
	label(w.nodes[1])
	w.settle()
	w.finishJobs()
	w.settle()
	w.measures()
	label(w.nodes[2])
	w.settle()
	w.holds("node " + w.nodes[2] + " joins storage pool ssd")
	sets := len(w.sets())
	lost := w.sets()[0]
	w.Expect(server.Client.Delete(w.ctx, &lost)).To(Succeed())
	w.Expect(w.reconcile(server.Killable(t, -1))).To(Succeed())
	w.Expect(w.sets()).To(HaveLen(sets))
	w.Expect(w.poolNodes("ssd")).To(Equal(w.nodes[:2]), "the node still waits")
}

func TestADaemonSetThatIsDeletedComesBackWhileMetadataServersWaitToBeAdded(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	w.measures()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MetadataServers.InstancesPerNode = 3
		fs.Spec.MetadataServers.Targets.Directories = append(fs.Spec.MetadataServers.Targets.Directories, "/data/meta2")
	})
	w.settle()
	w.holds("metadata server meta-2." + w.nodes[0] + " is added")
	sets := len(w.sets())
	lost := w.sets()[0]
	w.Expect(server.Client.Delete(w.ctx, &lost)).To(Succeed())
	w.Expect(w.reconcile(server.Killable(t, -1))).To(Succeed())
	w.Expect(w.sets()).To(HaveLen(sets))
	w.Expect(w.given()).To(HaveLen(6), "the metadata servers still wait")
}
