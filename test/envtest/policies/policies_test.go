//go:build envtest

// Package policies_test tests on a real API server what the chart's admission policies refuse to each user. It has a server of its own,
// because while the policies are active, no other test can create a StorageTarget.
package policies_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/envtest/apiserver"
	"parallelfs.dev/operator/test/patience"
)

const (
	release   = "parallelfs-operator"
	namespace = "parallelfs-system"
	// nodeOfToken is the extra field that the API server adds to a user whose token is bound to a pod on a node.
	nodeOfToken = "authentication.kubernetes.io/node-name"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.RunAlone(m, &server) }

// users holds the users by their names in the tables; a name with @ is an agent on that node. "Allowed everything" means that no role is in
// the way, so any refusal comes from a policy.
var users = map[string]rest.ImpersonationConfig{
	"the manager":                        {UserName: account(namespace, release+"-manager"), Groups: []string{"system:masters"}},
	"an administrator of filesystems":    {UserName: "fran", Groups: []string{"storage-admins"}},
	"an administrator of the cluster":    {UserName: "alex", Groups: []string{"system:masters"}},
	"the garbage collector":              {UserName: account("kube-system", "generic-garbage-collector")},
	"the namespace controller":           {UserName: account("kube-system", "namespace-controller")},
	"the one user of all controllers":    {UserName: "system:kube-controller-manager", Groups: []string{"system:masters"}},
	"an agent without a node":            {UserName: account(namespace, release+"-agent"), Groups: []string{"system:masters"}},
	"a service account of the same name": {UserName: account("kube-system", release+"-manager"), Groups: []string{"system:masters"}},
}

func account(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }

// user returns a client that acts as one of the users.
func user(t *testing.T, name string) client.Client {
	t.Helper()
	g := NewWithT(t)
	g.Expect(installChart()).To(Succeed())
	impersonated, known := users[name]
	if agent, node, onNode := strings.Cut(name, "@"); onNode {
		impersonated, known = rest.ImpersonationConfig{UserName: account(namespace, release+"-agent"), Extra: map[string][]string{nodeOfToken: {node}}}, true
		if agent == "an agent allowed everything" {
			impersonated.Groups = []string{"system:masters"}
		}
	}
	g.Expect(known).To(BeTrue(), name)
	config := rest.CopyConfig(server.Config)
	config.Impersonate = impersonated
	c, err := client.New(config, client.Options{Scheme: server.Scheme, Mapper: server.Client.RESTMapper()}) // the kinds are the same for all
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// installChart installs the chart's roles, accounts and policies once, and waits until the policies are active.
var installChart = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Bound(3*time.Minute))
	defer cancel()
	all, err := render(ctx)
	if err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "storage-admins"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: release + "-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "storage-admins"}}},
	}
	for _, object := range all {
		switch object.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			objects = append(objects, object)
		}
	}
	for _, object := range objects {
		if err := server.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("can't install %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
	}
	// A policy is active only after the API server has received and compiled it.
	agent := rest.CopyConfig(server.Config)
	agent.Impersonate = users["an agent without a node"]
	agentClient, err := client.New(agent, client.Options{Scheme: server.Scheme})
	if err != nil {
		return err
	}
	for {
		first := agentClient.Create(ctx, inventory("nobody"), client.DryRunAll)
		second := server.Client.Create(ctx, target("nobody", "n1"), client.DryRunAll)
		third := server.Client.Create(ctx, fileSystemNode("nobody", "n1"), client.DryRunAll)
		misspelled := mountedFileSystem()
		misspelled.Annotations = map[string]string{"parallelfs.dev/chekc": ""}
		fourth := server.Client.Create(ctx, misspelled, client.DryRunAll)
		if says(first, "names no node") && says(second, "only the operator") && says(third, "only the operator") && says(fourth, "no annotation") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the policies don't refuse what they should: %w; %w; %w; %w", first, second, third, fourth)
		case <-time.After(50 * time.Millisecond):
		}
	}
})

func says(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// render returns the objects of the chart.
func render(ctx context.Context) ([]*unstructured.Unstructured, error) {
	root := filepath.Join("..", "..", "..")
	helm := os.Getenv("HELM")
	if helm == "" {
		helm = filepath.Join(root, "bin", "helm")
	}
	home, err := os.MkdirTemp("", "helm")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	chart := filepath.Join(root, "charts", "parallelfs-operator")
	command := exec.CommandContext(ctx, helm, "template", release, chart, "--set=imageRegistry=registry.example.com", "--namespace", namespace)
	command.Env = []string{"HOME=" + home}
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("can't render the chart; run `make test-chart` once, which makes bin/helm, or set HELM to a helm: %w", err)
	}
	// Go caches a test's result until a file that the test itself has read changes; files read by helm don't count.
	err = fs.WalkDir(os.DirFS(chart), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			_, err = os.ReadFile(filepath.Join(chart, name))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(out), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

func TestTheAPIServerAcceptsEveryObjectOfTheChart(t *testing.T) {
	g := NewWithT(t)
	user(t, "the manager")
	objects, err := render(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	seen := map[string]bool{}
	for _, object := range objects {
		err := server.Client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		seen[object.GetKind()] = true
	}
	g.Expect(seen).To(And(HaveKey("DaemonSet"), HaveKey("Deployment"), HaveKey("CustomResourceDefinition")))
}

// inventory is the NodeInventory of a node.
func inventory(node string) *v1alpha1.NodeInventory {
	return &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}}
}

// target is a StorageTarget on a node.
func target(name, node string) *v1alpha1.StorageTarget {
	return &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "11-11"}, Cluster: "c1-c1", Node: node, Role: v1alpha1.RoleStorage, StoragePool: "ssd",
			Device: v1alpha1.DeviceIdentity{ID: "wwn-0x5000", SizeBytes: 1 << 40}, Format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS},
			FormatPolicy: v1alpha1.FormatIfBlank,
		},
	}
}

// made creates an object as the manager does, with a unique name.
func made(t *testing.T, object *v1alpha1.StorageTarget) *v1alpha1.StorageTarget {
	t.Helper()
	g := NewWithT(t)
	status := object.Status
	object.GenerateName, object.Name = object.Name+"-", ""
	g.Expect(user(t, "the manager").Create(t.Context(), object)).To(Succeed())
	object.Status = status
	g.Expect(server.Client.Status().Update(t.Context(), object)).To(Succeed())
	return object
}
