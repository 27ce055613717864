package beegfs

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Files returns all configuration files that the node binary writes for the daemons and the client of a node, by daemon and name, such as
// "meta-0/beegfs-meta.conf". It also returns the files with which the node binary initializes an empty target, such as
// "meta-0/<target>/nodeNumID". The variables have the values that they have on the node; $(NODE_INTERFACE) stays if no inventory has the
// interface. A daemon that waits for a target, or for its CPUs, has none.
func Files(in backend.Input, node string) (map[string]string, error) {
	fs := in.FileSystem
	management, ok := managementNode(in)
	if !ok {
		return nil, fmt.Errorf("the node of the management service of %s/%s is not known", fs.Namespace, fs.Name)
	}
	out := map[string]string{}
	for _, member := range members(in)[node] {
		if member.Waits != "" {
			continue
		}
		run, err := runOf(in, management.IP, member.Name)
		if err != nil {
			return nil, err
		}
		f := filling{variables: nodeVariables(in, node)}
		if err := f.daemon(out, member.Name, run, member); err != nil {
			return nil, err
		}
	}
	named := func(n backend.Node) bool { return n.Name == node }
	if !slices.ContainsFunc(backend.ClientNodes(fs, in.Nodes), named) {
		return out, nil
	}
	mount, err := clientMount(fs, management.IP, string(fs.Spec.Clients.MountPath))
	if err != nil {
		return nil, err
	}
	f := filling{variables: nodeVariables(in, node)}
	f.variables["FREE_PORT"] = fmt.Sprint(mount.FreePort)
	return out, f.files(out, componentClient, mount.Files)
}

// runOf returns the configuration of the member of that name.
func runOf(in backend.Input, managementIP, member string) (spec.Run, error) {
	fs := in.FileSystem
	if member == componentManagement {
		return managementRun(fs)
	}
	for slot := range metaSlots(fs) {
		if member == spec.MemberName(metaDaemon(slot)) {
			return metaRun(fs, managementIP, slot)
		}
	}
	for _, pool := range fs.Spec.StoragePools {
		if slot, ok := in.PoolSlot(pool.Name); ok && member == spec.MemberName(storageDaemon(pool.Name)) {
			return storageRun(fs, managementIP, pool, slot)
		}
	}
	return spec.Run{}, fmt.Errorf("there is no daemon %s", member)
}

// nodeVariables returns the environment variables of every daemon of a node.
func nodeVariables(in backend.Input, node string) map[string]string {
	n, _ := in.Node(node)
	variables := map[string]string{"NODE_NAME": node, "NODE_IP": n.IP, "NODE_INTERFACE": ownInterface}
	for _, i := range in.Inventories[node].NetworkInterfaces {
		for _, address := range i.Addresses {
			if prefix, err := netip.ParsePrefix(address); err == nil && prefix.Addr().String() == n.IP {
				variables["NODE_INTERFACE"] = i.Name
			}
		}
	}
	return variables
}

// filling replaces variables.
type filling struct{ variables map[string]string }

func (f filling) with(more map[string]string) filling {
	all := map[string]string{}
	maps.Copy(all, f.variables)
	maps.Copy(all, more)
	return filling{all}
}

var variablePattern = regexp.MustCompile(`\$\(([A-Z_]+)\)`)

func (f filling) text(content string) (string, error) {
	var unknown []string
	filled := variablePattern.ReplaceAllStringFunc(content, func(found string) string {
		value, ok := f.variables[strings.Trim(found, "$()")]
		if !ok {
			unknown = append(unknown, found)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("%s has no value", strings.Join(unknown, ", "))
	}
	return filled, nil
}

func (f filling) files(out map[string]string, directory string, files []spec.File) error {
	for _, file := range files {
		content, err := f.text(file.Content)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", file.Path, directory, err)
		}
		out[path.Join(directory, path.Base(file.Path))] = content
	}
	return nil
}

func (f filling) daemon(out map[string]string, directory string, run spec.Run, member v1alpha1.NodeMember) error {
	f = f.with(v1alpha1.Texts(member.Variables))
	data := make([]string, len(member.Targets))
	for i, t := range member.Targets {
		data[i] = path.Join(t.Path, run.OnTargets.Directory, run.OnTargets.Data)
		if t.Directory {
			data[i] = path.Join(t.Path, run.OnTargets.Data)
		}
		for _, file := range run.OnTargets.Initialize.Files {
			content, err := f.with(v1alpha1.Texts(t.Variables)).text(file.Content)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", file.Name, t.Name, err)
			}
			out[path.Join(directory, t.Name, file.Name)] = content
		}
	}
	return f.with(map[string]string{"TARGET": data[0], "TARGETS": strings.Join(data, ",")}).files(out, directory, run.Files)
}
