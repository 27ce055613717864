package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
)

// longestMessage is the limit of NodeAgentStatus.message, in bytes.
const longestMessage = 1024

// NodeFiles writes the configuration of this node's servers to node files, which the servers read at their start. While the API server does
// not answer, the last files remain.
type NodeFiles struct {
	// Client writes. Live reads directly from the API server: a file is never written or removed because of a stale cache.
	Client   client.Client
	Live     client.Reader
	NodeName string
	Resync   time.Duration
	// Root is spec.NodesRoot, and Modprobe the node's spec.ModprobeDirectory.
	Root, Modprobe string
	// Writer writes to the disk.
	Writer durable.Writer
	// Record writes the record of a server's target to the target's disk (record.Keep).
	Record func(t spec.Target, wanted spec.TargetRecord) error
	// BootID identifies the current boot of the node (spec.BootIDFile).
	BootID string

	// patience limits the time for all records of a node that are written at once; 0 means recordLimit.
	patience time.Duration
	records  recorder
	inodes   directoryInodes
	// withdrawn holds the uids of deleted targets (Withdraw).
	withdrawn sync.Map
	// mutex is held from the request to the API server until the files are written. Otherwise the older of two answers could be written last.
	mutex sync.Mutex
}

func (r *NodeFiles) setup(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("nodefiles").
		For(&v1alpha1.FileSystemNode{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}, predicate.NewPredicateFuncs(r.here))).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
	// A deletion while the agent was down triggers no event.
	return errors.Join(err, mgr.Add(runnable(r.sweepAlways)))
}

// here is true for the FileSystemNodes of this node.
func (r *NodeFiles) here(object client.Object) bool {
	n, ok := object.(*v1alpha1.FileSystemNode)
	return ok && n.Spec.Node == r.NodeName
}

// Reconcile writes the file of one FileSystemNode and reports it in the object's status. Module options are written first, because servers
// load the modules. A failure to write them does not keep the node file from being written.
func (r *NodeFiles) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	n := &v1alpha1.FileSystemNode{}
	err := r.Live.Get(ctx, request.NamespacedName, n)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.sweep(ctx)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read FileSystemNode %s: %w", request, err)
	case !r.here(n):
		return ctrl.Result{}, nil
	}
	says := v1alpha1.NodeAgentStatus{ObservedGeneration: n.Generation, Directories: r.inodes.of(n)}
	options := r.keepModuleOptions(ctx, n)
	lacking, wrote, failed := r.update(ctx, n)
	failed = errors.Join(failed, lacking.err())
	if err := errors.Join(failed, options); err != nil {
		says.Message = v1alpha1.Cut(err.Error(), longestMessage)
	}
	if failed != nil {
		says.ObservedGeneration = 0
		if n.Status.Agent != nil {
			says.ObservedGeneration = n.Status.Agent.ObservedGeneration
		}
	}
	if wrote {
		log.FromContext(ctx).Info("Wrote the node file",
			"fileSystem", n.Spec.FileSystem.Name, "generation", n.Generation)
	}
	if err := errors.Join(failed, Say(ctx, r.Client, n, says)); err != nil {
		return ctrl.Result{}, err
	}
	if len(lacking) > 0 || options != nil {
		return ctrl.Result{RequeueAfter: min(lastRetry, r.Resync)}, nil
	}
	return ctrl.Result{RequeueAfter: r.Resync}, nil
}

// update writes the file of a FileSystemNode. The caller holds the mutex.
func (r *NodeFiles) update(ctx context.Context, n *v1alpha1.FileSystemNode) (of lacking, wrote bool, err error) {
	served, err := r.servedOf(ctx, n)
	if err != nil {
		return nil, false, err
	}
	if served.hasPairs() {
		// An agent that is being replaced may still write. Its data may be older than the next agent's handover of a target.
		lock, err := r.lock(n)
		if err != nil {
			return nil, false, err
		}
		defer lock.Close()
		if err := r.readPairs(ctx, served); err != nil {
			return nil, false, err
		}
	}
	of = r.keepRecords(ctx, n, served)
	wrote, err = r.write(n, of, served)
	return of, wrote, err
}

// directory returns the directory of a FileSystem's file. A name that would lead to another directory is refused.
func (r *NodeFiles) directory(n *v1alpha1.FileSystemNode) (string, error) {
	name := filepath.Base(spec.NodeDirectory(n.Namespace, n.Spec.FileSystem.Name))
	if name != n.Namespace+"."+n.Spec.FileSystem.Name || strings.ContainsRune(n.Spec.FileSystem.Name, filepath.Separator) {
		return "", fmt.Errorf("%q can't be the name of a FileSystem (spec.fileSystem.name)", n.Spec.FileSystem.Name)
	}
	return filepath.Join(r.Root, name), nil
}

// write writes the file if its content differs. It leaves out a disk that lacks its record and that no server was configured to use before.
func (r *NodeFiles) write(n *v1alpha1.FileSystemNode, lacking lacking, of served) (wrote bool, err error) {
	directory, err := r.directory(n)
	if err != nil {
		return false, err
	}
	file := NodeFile(n)
	for i := range file.Members {
		for j := range file.Members[i].Targets {
			if t := &file.Members[i].Targets[j]; lacking[t.Name].isNew {
				t.UUID = ""
			}
		}
	}
	path := filepath.Join(directory, spec.NodeFileName)
	if err := r.tell(&file, of, path); err != nil {
		return false, err
	}
	content, err := json.MarshalIndent(file, "", " ")
	if err != nil {
		return false, fmt.Errorf("encode the node file: %w", err)
	}
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return false, nil
	}
	if err := r.Writer.Directory(directory, durable.Ownership{Mode: 0o755}); err != nil {
		return false, err
	}
	return true, r.Writer.File(path, content, durable.Ownership{Mode: 0o644})
}

// NodeFile returns the node file: the part of the record in the object's spec that servers need at their start.
func NodeFile(n *v1alpha1.FileSystemNode) spec.NodeFile {
	out := spec.NodeFile{
		Version:    spec.NodeFileVersion,
		FileSystem: spec.Owner{Namespace: n.Namespace, Name: n.Spec.FileSystem.Name, UID: n.Spec.FileSystem.UID},
		Node:       n.Spec.Node, Generation: n.Generation, Members: []spec.Member{},
	}
	for _, m := range n.Spec.Members {
		if m.Retired {
			continue // it is not started again
		}
		member := spec.Member{Name: m.Name, Waits: m.Waits, Variables: v1alpha1.Texts(m.Variables)}
		for _, t := range m.Targets {
			if t.Path == "" {
				continue // it was taken out
			}
			member.Targets = append(member.Targets, spec.Target{
				Name: t.Name, Path: t.Path, UUID: t.UUID, Remove: t.Remove, Directory: t.Directory, Granted: t.Granted, Expected: t.Expected,
				Variables: v1alpha1.Texts(t.Variables), Files: v1alpha1.Texts(t.Files),
			})
		}
		if p := m.Pinning; p != nil {
			member.Pinning = &spec.Pinning{CPUs: p.CPUs, MemoryNodes: p.MemoryNodes, MemoryPolicy: p.MemoryPolicy, Why: p.Why}
		}
		out.Members = append(out.Members, member)
	}
	return out
}

// Say writes the agent's part of the status if it differs.
func Say(ctx context.Context, c client.Client, n *v1alpha1.FileSystemNode, says v1alpha1.NodeAgentStatus) error {
	if n.Status.Agent != nil && equality.Semantic.DeepEqual(*n.Status.Agent, says) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&says)
	if err != nil {
		return fmt.Errorf("encode the status of %s: %w", n.Name, err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": n.Name, "namespace": n.Namespace, "uid": string(n.UID)},
		"status":   map[string]any{"agent": content},
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FileSystemNode"))
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership, client.FieldOwner(FieldOwner))
	if err != nil {
		return fmt.Errorf("write the status of FileSystemNode %s: %w", n.Name, err)
	}
	return nil
}

// sweepAlways removes files that are no longer needed, at once and at each resync.
func (r *NodeFiles) sweepAlways(ctx context.Context) error {
	for {
		r.mutex.Lock()
		err := r.sweep(ctx)
		r.mutex.Unlock()
		again := r.Resync
		if err != nil && ctx.Err() == nil {
			again = lastRetry
			log.FromContext(ctx).Error(err, "Can't look which files of this node are not needed any more")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

// sweep removes the files that have no FileSystemNode at the API server. Their directories stay, because a pod that has mounted one would
// never see a new directory of the same name. The caller holds the mutex.
func (r *NodeFiles) sweep(ctx context.Context) error {
	var list v1alpha1.FileSystemNodeList
	if err := r.Live.List(ctx, &list, client.MatchingLabelsSelector{Selector: ofNode(r.NodeName)}); err != nil {
		return fmt.Errorf("list the FileSystemNodes of this node: %w", err)
	}
	errs := []error{r.sweepModuleOptions(ctx, list)}
	keep := map[string]bool{}
	for i := range list.Items {
		if directory, err := r.directory(&list.Items[i]); err == nil && r.here(&list.Items[i]) {
			keep[directory] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(r.Root, "*", spec.NodeFileName))
	if err != nil {
		return fmt.Errorf("look for files below %s: %w", r.Root, err)
	}
	for _, path := range files {
		if keep[filepath.Dir(path)] {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove the node file of a FileSystem that is gone: %w", err))
			continue
		}
		log.FromContext(ctx).Info("Removed the node file of a FileSystem that is gone", "path", path)
	}
	return errors.Join(errs...)
}
