//go:build envtest

package benchmarkrun

import (
	"testing"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/outcomes"
)

// podSecurity makes the API server refuse pods in the namespace that violate the given profile of Pod Security.
func (s *setting) podSecurity(profile string) {
	s.t.Helper()
	namespace := &corev1.Namespace{}
	s.must(s.client.Get(s.t.Context(), client.ObjectKey{Name: s.namespace}, namespace))
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, "pod-security.kubernetes.io/enforce", profile)
	s.must(s.client.Update(s.t.Context(), namespace))
}

// makeClaim creates a claim, and binds it to a volume.
func (s *setting) makeClaim(name string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	s.t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name}}
	volume.Spec.Capacity, volume.Spec.AccessModes = size, []corev1.PersistentVolumeAccessMode{mode}
	volume.Spec.NFS = &corev1.NFSVolumeSource{Server: "192.0.2.1", Path: "/export"}
	s.must(s.client.Create(s.t.Context(), volume))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	claim.Spec.AccessModes, claim.Spec.VolumeName, claim.Spec.StorageClassName = volume.Spec.AccessModes, volume.Name, new("")
	claim.Spec.Resources.Requests = size
	s.must(s.client.Create(s.t.Context(), claim))
	claim.Status.Phase, claim.Status.AccessModes, claim.Status.Capacity = corev1.ClaimBound, volume.Spec.AccessModes, size
	s.must(s.client.Status().Update(s.t.Context(), claim))
	return claim
}

// onClaim makes a run measure a claim.
func onClaim(name string) func(*v1alpha1.BenchmarkRun) {
	return func(r *v1alpha1.BenchmarkRun) {
		r.Spec.Target = v1alpha1.BenchmarkTarget{PersistentVolumeClaim: v1alpha1.ClaimTarget{ClaimName: name}}
	}
}

func TestARunMeasuresAClaimUnderPodSecurityRestricted(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.podSecurity("restricted")
	claim := s.makeClaim("data", corev1.ReadWriteOnce)
	var seen []corev1.PodSpec
	s.before = func(job client.Object) {
		j, is := job.(*batchv1.Job)
		g.Expect(is).To(BeTrue())
		seen = append(seen, j.Spec.Template.Spec)
	}
	key := s.makeRun("sweep", onClaim("data"))
	s.settle(key)

	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(run).Message)
	g.Expect(run.Status.Target).To(Equal("PersistentVolumeClaim data"))
	g.Expect(s.ran).To(Equal(once("sweep")))
	g.Expect(s.directories).To(BeEmpty())
	g.Expect(s.jobs()).To(BeEmpty())
	for i := range seen {
		g.Expect(seen[i].Volumes).To(ContainElement(HaveField("VolumeSource.PersistentVolumeClaim.ClaimName", "data")))
		g.Expect(seen[i].Volumes).NotTo(ContainElement(HaveField("VolumeSource.HostPath", Not(BeNil()))))
		g.Expect(seen[i].NodeSelector).To(Equal(map[string]string{"client": s.namespace}))
	}
	p := run.Status.Provenance
	g.Expect(p.Unknown).To(Equal(outcomes.UnknownOfVolume))
	g.Expect(p.Volume).To(Equal(&v1alpha1.VolumeProvenance{
		Claim: "data " + string(claim.UID), PersistentVolume: claim.Spec.VolumeName, Driver: "nfs", Attributes: []string{"path=/export", "server=192.0.2.1"},
		AccessModes: "ReadWriteOnce", Capacity: "10Gi", Mount: "nfs4 (rw)",
	}))
	g.Expect(p.Clients).To(ConsistOf(HaveField("Node", s.nodeName(0))))
	var leases coordinationv1.LeaseList
	s.list(&leases)
	g.Expect(leases.Items).To(ContainElement(And(HaveField("Name", "parallelfs-claim-"+string(claim.UID)), HaveField("Spec.HolderIdentity", BeNil()))))
}

func TestADistributedRunOnASharedClaimIsAnMPIJobUnderPodSecurityBaseline(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.podSecurity("baseline")
	s.makeClaim("data", corev1.ReadWriteMany)
	var workers []int32
	s.before = func(job client.Object) {
		if j, is := job.(*mpiv2.MPIJob); is {
			workers = append(workers, *j.Spec.MPIReplicaSpecs[mpiv2.MPIReplicaTypeWorker].Replicas)
		}
	}
	key := s.makeRun("wide", onClaim("data"), func(r *v1alpha1.BenchmarkRun) {
		r.Spec.IOzone.Mode, r.Spec.Clients.Count, r.Spec.Processes = v1alpha1.IOzoneDistributed, 2, 4
	})
	s.settle(key)
	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(s.run(key)).Message)
	g.Expect(workers).To(Equal([]int32{2, 2, 2, 2}))
	g.Expect(s.run(key).Status.Points[0].Placement).To(Equal("4 on 2 clients (2 each)"))
}

func TestRunsOnOneClaimTakeTurns(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.makeClaim("data", corev1.ReadWriteMany)
	s.makeClaim("other", corev1.ReadWriteMany)
	s.before = func(client.Object) { g.Expect(s.running()).To(BeEmpty()) }
	var keys []types.NamespacedName
	for _, name := range []string{"first", "second"} {
		keys = append(keys, s.makeRun(name, onClaim("data")))
	}
	for _, key := range keys {
		g.Expect(s.reconcile(key)).To(Succeed())
	}
	g.Expect(s.reconcile(keys[1])).To(Succeed())
	g.Expect(succeeded(s.run(keys[1]))).To(And(HaveField("Reason", v1alpha1.ReasonWaitingForRun),
		HaveField("Message", "BenchmarkRun first, which is older, measures PersistentVolumeClaim data first")))
	apart := s.makeRun("apart", onClaim("other"))
	g.Expect(s.reconcile(apart)).To(Succeed())
	g.Expect(s.reconcile(apart)).To(Succeed())
	g.Expect(succeeded(s.run(apart)).Reason).To(Equal(v1alpha1.ReasonPreflight))
	s.before = nil
	s.settle(append(keys, apart)...)
	for _, key := range append(keys, apart) {
		g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	}
}

func TestAnUnboundClaimIsReportedWithTheMessageOfItsProvisioner(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}}
	claim.Spec.AccessModes, claim.Spec.StorageClassName = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, new("missing")
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	s.must(s.client.Create(t.Context(), claim))
	s.must(s.client.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data.1"}, Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed",
		InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: s.namespace, Name: "data", UID: claim.UID},
		Message:        `storageclass.storage.k8s.io "missing" not found`, LastTimestamp: metav1.Now(),
	}))
	key := s.makeRun("sweep", onClaim("data"))
	s.settle(key)
	g.Expect(succeeded(s.run(key))).To(And(HaveField("Reason", v1alpha1.ReasonWaitingForVolume),
		HaveField("Message", `PersistentVolumeClaim data is not bound to a volume: storageclass.storage.k8s.io "missing" not found`)))
	g.Expect(s.jobs()).To(BeEmpty())
}

func TestARunOnAStorageClassMakesAClaimAndDeletesIt(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.podSecurity("restricted")
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) {
		r.Spec.Target = v1alpha1.BenchmarkTarget{StorageClass: v1alpha1.StorageClassTarget{Name: "fast", Size: "1Gi"}}
	})
	for range 4 {
		g.Expect(s.reconcile(key)).To(Succeed())
	}
	g.Expect(s.jobs()).To(BeEmpty(), "no pod is made before the claim is bound: the class is not known to wait for one")
	claim := &corev1.PersistentVolumeClaim{}
	s.must(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-volume"}, claim))
	g.Expect(metav1.IsControlledBy(claim, s.run(key))).To(BeTrue())
	g.Expect(claim.Spec).To(And(HaveField("StorageClassName", HaveValue(Equal("fast"))), HaveField("AccessModes", ConsistOf(corev1.ReadWriteOnce)),
		HaveField("Resources.Requests", HaveKeyWithValue(corev1.ResourceStorage, resource.MustParse("1Gi")))))
	claim.Status.Phase, claim.Status.AccessModes = corev1.ClaimBound, claim.Spec.AccessModes
	s.must(s.client.Status().Update(t.Context(), claim))
	s.settle(key)

	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(s.run(key)).Message)
	g.Expect(s.run(key).Status.Target).To(Equal("StorageClass fast"))
	g.Expect(s.run(key).Status.Provenance.Volume.StorageClass).To(Equal("fast"))
	var claims corev1.PersistentVolumeClaimList
	s.list(&claims)
	g.Expect(claims.Items).To(HaveEach(HaveField("DeletionTimestamp", Not(BeNil()))), "this API server has no controller that removes the protection of claims")
}

func TestAClaimOfAnotherOwnerIsNeitherMeasuredNorDeleted(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.makeClaim("sweep-volume", corev1.ReadWriteOnce)
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) {
		r.Spec.Target = v1alpha1.BenchmarkTarget{StorageClass: v1alpha1.StorageClassTarget{Name: "fast", Size: "1Gi"}}
	})
	g.Expect(s.reconcile(key)).To(MatchError(ContainSubstring("PersistentVolumeClaim sweep-volume exists and does not belong to BenchmarkRun sweep")))
	claim := &corev1.PersistentVolumeClaim{}
	s.must(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-volume"}, claim))
	g.Expect(claim.DeletionTimestamp).To(BeNil())
	g.Expect(s.jobs()).To(BeEmpty())
}
