package filesystem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/decisions"
	"parallelfs.dev/operator/internal/plan"
)

// attachments returns the volumes that Kubernetes has attached, by node. A volume counts from before its driver attaches it until after it
// is detached. The cache has it before an agent sees the disk, because an agent looks at the disks of its node only now and then.
func (r *Reconciler) attachments(ctx context.Context, nodes map[string]bool) (map[string][]plan.Attachment, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list VolumeAttachments: %w", err)
	}
	out := map[string][]plan.Attachment{}
	for i := range list.Items {
		of := &list.Items[i]
		if !nodes[of.Spec.NodeName] {
			continue
		}
		handle := ""
		if name := of.Spec.Source.PersistentVolumeName; name != nil {
			var err error
			if handle, err = r.handles.of(ctx, r.Reader, of.UID, *name); err != nil {
				return nil, err
			}
		}
		out[of.Spec.NodeName] = append(out[of.Spec.NodeName], plan.AttachmentOf(of, handle))
	}
	plan.SortAttachments(out)
	return out, nil
}

// handles caches the handles of the volumes of VolumeAttachments, which never change.
type handles struct {
	mutex sync.Mutex
	known map[types.UID]string
}

// mostHandles bounds the cache, which is cleared when it is full.
const mostHandles = 10000

// of returns the handle of a PersistentVolume. It is empty if the volume is gone, or does not belong to a CSI driver.
func (h *handles) of(ctx context.Context, reader client.Reader, attachment types.UID, name string) (string, error) {
	h.mutex.Lock()
	handle, known := h.known[attachment]
	h.mutex.Unlock()
	if known {
		return handle, nil
	}
	var volume corev1.PersistentVolume
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &volume); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	if csi := volume.Spec.CSI; csi != nil {
		handle = csi.VolumeHandle
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.known == nil || len(h.known) >= mostHandles {
		h.known = map[types.UID]string{}
	}
	h.known[attachment] = handle
	return handle, nil
}

// nodesOf returns the nodes on which disks may be chosen.
func nodesOf(fs *v1alpha1.FileSystem, nodes plan.TargetNodes) map[string]bool {
	out := map[string]bool{}
	for _, list := range slices.Concat([][]string{nodes.Management, nodes.Metadata}, slices.Collect(maps.Values(nodes.Pools))) {
		for _, node := range list {
			out[node] = true
		}
	}
	for _, role := range decisions.RoleTargets(fs) {
		for _, d := range role.Devices {
			out[d.Node] = true
		}
	}
	return out
}
