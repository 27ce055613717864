package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
)

// moduleOptionsFile returns the path of the file with the module options of a FileSystem.
func (r *NodeFiles) moduleOptionsFile(n *v1alpha1.FileSystemNode) (string, error) {
	if _, err := r.directory(n); err != nil {
		return "", err
	}
	return filepath.Join(r.Modprobe, spec.ModuleOptionsFile(n.Namespace, n.Spec.FileSystem.Name)), nil
}

// keepModuleOptions writes the object's module options to that file, and removes the file if the object has none. Contradicting options in
// other files of the node are refused, because the kernel would get both and take the last one.
func (r *NodeFiles) keepModuleOptions(ctx context.Context, n *v1alpha1.FileSystemNode) error {
	path, err := r.moduleOptionsFile(n)
	if err != nil {
		return err
	}
	asked := n.Spec.ModuleOptions
	if asked == nil || !asked.Write {
		return removeModuleOptions(ctx, path)
	}
	content := fmt.Sprintf("%sfor FileSystem %s in namespace %s, which it follows: change that, and not this file.\n%s\n",
		spec.ModuleOptionsHeading, n.Spec.FileSystem.Name, n.Namespace, strings.Join(asked.Lines, "\n"))
	there, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at the options of modules that were written before: %w", err)
	case err == nil && !strings.HasPrefix(string(there), spec.ModuleOptionsHeading):
		return fmt.Errorf("the options of modules are not written, because somebody else has written %s; take it away", r.onNode(path))
	}
	if why, err := r.contradiction(path, asked.Lines); err != nil || why != "" {
		return errors.Join(err, said(why))
	}
	if string(there) == content {
		return nil
	}
	log.FromContext(ctx).Info("Writing what modules are to be loaded with", "path", r.onNode(path), "fileSystem", n.Spec.FileSystem.Name)
	return r.Writer.File(path, []byte(content), durable.Ownership{Mode: 0o644})
}

// onNode returns a path as it is outside of the agent's container.
func (r *NodeFiles) onNode(path string) string {
	return filepath.Join(spec.ModprobeDirectory, filepath.Base(path))
}

func said(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(why)
}

// contradiction names another file that has other values for the same options. It is empty if there is none.
func (r *NodeFiles) contradiction(mine string, lines []string) (string, error) {
	wanted := map[string]string{}
	for _, line := range lines {
		optionsOf(line, func(option, value string) { wanted[option] = value })
	}
	files, err := filepath.Glob(filepath.Join(r.Modprobe, "*.conf"))
	if err != nil {
		return "", fmt.Errorf("look at the options of modules: %w", err)
	}
	var why string
	for _, path := range files {
		if path == mine {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("look at the options of modules: %w", err)
		}
		for line := range strings.Lines(string(content)) {
			optionsOf(line, func(option, value string) {
				if want, is := wanted[option]; is && value != want && why == "" {
					why = fmt.Sprintf("the options of modules are not written, because %s has %q for the module's option %q, and %q is asked for; "+
						"take that line away there, or ask for no CPUs on this node", r.onNode(path), value, option, want)
				}
			})
		}
	}
	return why, nil
}

// optionsOf passes on the options in a line of modprobe.d(5), such as "libcfs cpu_pattern" with "0[0-1] 1[2-3]".
func optionsOf(line string, each func(option, value string)) {
	rest, is := strings.CutPrefix(strings.TrimSpace(line), "options ")
	if !is {
		return
	}
	module, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	module = strings.ReplaceAll(module, "-", "_") // modprobe treats both alike
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		name, after, has := strings.Cut(rest, "=")
		if !has {
			return
		}
		var value string
		if quoted, is := strings.CutPrefix(after, `"`); is {
			value, rest, _ = strings.Cut(quoted, `"`)
		} else {
			value, rest, _ = strings.Cut(after, " ")
		}
		each(module+" "+name, value)
	}
}

// removeModuleOptions removes such a file unless another program has written it.
func removeModuleOptions(ctx context.Context, path string) error {
	there, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the options of modules that were written before: %w", err)
	case !strings.HasPrefix(string(there), spec.ModuleOptionsHeading):
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the options of modules that no FileSystem asks for any longer: %w", err)
	}
	log.FromContext(ctx).Info("Removed the options of modules that no FileSystem asks for any longer", "file", filepath.Base(path))
	return nil
}

// sweepModuleOptions removes the files of FileSystems that no longer have anything on the node. The caller holds the mutex.
func (r *NodeFiles) sweepModuleOptions(ctx context.Context, list v1alpha1.FileSystemNodeList) error {
	keep := map[string]bool{}
	for i := range list.Items {
		if path, err := r.moduleOptionsFile(&list.Items[i]); err == nil && r.here(&list.Items[i]) {
			keep[path] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(r.Modprobe, spec.ModuleOptionsFile("*", "*")))
	errs := []error{err}
	for _, path := range files {
		if !keep[path] {
			errs = append(errs, removeModuleOptions(ctx, path))
		}
	}
	return errors.Join(errs...)
}
