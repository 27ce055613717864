package benchmarksuite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/internal/backend"
)

// check refuses variants that would be invalid alone, and suites that can't be measured: a variant must not find data of another one on its
// disks.
func check(suite *v1alpha1.BenchmarkSuite, plans []variantPlan, backends backend.Set) *refusal {
	if b := suite.Spec.Baseline; b != nil && !slices.Contains(reference.Names(), b.Published) {
		return invalid("spec.baseline.published: there is no table %q; there are %s", b.Published, strings.Join(reference.Names(), ", "))
	}
	names := map[string]string{}
	for i := range plans {
		p := &plans[i]
		if name := p.fileSystem.GetName(); len(name) > maxName {
			return invalid("variant %s: its FileSystem would be named %s, which has %d characters, and at most %d are allowed; shorten metadata.name of the suite, or the variant's name",
				p.name, name, len(name), maxName)
		}
		if refused := checkVariant(suite, p, backends); refused != nil {
			return refused
		}
		for j, run := range p.runs {
			what := fmt.Sprintf("run %s of variant %s", suite.Spec.Runs[j].Name, p.name)
			if other, taken := names[run.GetName()]; taken {
				return invalid("the BenchmarkRuns of %s and of %s would both be named %s; rename one of them", other, what, run.GetName())
			}
			names[run.GetName()] = what
		}
	}
	for i := range plans {
		for j := range i {
			if refused := apart(suite, &plans[j], &plans[i]); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// checkVariant refuses a variant that would take over disks with existing data: the suite did not make that data, so it can neither be
// compared nor be wiped.
func checkVariant(suite *v1alpha1.BenchmarkSuite, p *variantPlan, backends backend.Set) *refusal {
	if p.spec.Provisioning.FormatPolicy == v1alpha1.FormatNever {
		return invalid("variant %s: spec.fileSystem.provisioning.formatPolicy is Never, which uses only disks that hold this filesystem already; "+
			"a suite measures filesystems that it made: set it to IfBlank or Approved", p.name)
	}
	if suite.Spec.AfterVariant != v1alpha1.AfterVariantDestroy {
		return nil
	}
	adopter, ok := backends[p.spec.Type].(backend.Adopter)
	if !ok {
		return nil
	}
	if field := adopter.Adopts(&p.spec); field != "" {
		return invalid("variant %s: spec.fileSystem.%s takes over data that was there before, which is never the suite's to wipe; "+
			"leave it out, or set spec.afterVariant to Keep or Delete", p.name, field)
	}
	return nil
}

// place is where one role of a variant keeps data.
type place struct {
	field, selector string
	targets         v1alpha1.TargetsSpec
}

func placesOf(spec *v1alpha1.FileSystemSpec) []place {
	out := []place{{"metadataServers", fmt.Sprint(spec.MetadataServers.NodeSelector), spec.MetadataServers.Targets}}
	if m := spec.Management(); m != nil {
		out = append(out, place{"management", fmt.Sprint(m.NodeSelector), *m.Targets})
	}
	for _, pool := range spec.StoragePools {
		out = append(out, place{"storagePools[" + pool.Name + "]", fmt.Sprint(pool.NodeSelector), pool.Targets})
	}
	return out
}

// apart refuses two variants if the second would find data of the first on its disks, or would be mounted over it.
func apart(suite *v1alpha1.BenchmarkSuite, first, second *variantPlan) *refusal {
	after := suite.Spec.AfterVariant
	for _, a := range placesOf(&first.spec) {
		for _, b := range placesOf(&second.spec) {
			for _, d := range a.targets.Directories {
				if a.selector == b.selector && slices.Contains(b.targets.Directories, d) {
					return invalid("variants %s and %s both keep data in the directory %s (%s and %s, on the same nodes): a directory is never wiped, so the second "+
						"would refuse what the first has left there; give each a directory of its own in spec.variants[].fileSystem", first.name, second.name, d, a.field, b.field)
				}
			}
			if after == v1alpha1.AfterVariantDestroy {
				continue
			}
			mine := devicesOf(a.targets)
			for _, d := range slices.Sorted(maps.Keys(devicesOf(b.targets))) {
				if mine[d] {
					return invalid("variants %s and %s both use the disk %s (%s and %s), and spec.afterVariant %s leaves on it what the first has written; "+
						"give each disks of its own, or set spec.afterVariant to Destroy", first.name, second.name, d, a.field, b.field, after)
				}
			}
		}
	}
	a, b := first.spec.Clients, second.spec.Clients
	if after == v1alpha1.AfterVariantKeep && a != nil && b != nil && a.MountPath != "" && a.MountPath == b.MountPath &&
		maps.Equal(a.NodeSelector, b.NodeSelector) {
		return invalid("variants %s and %s are both mounted at %s on the same nodes, and spec.afterVariant Keep leaves the first there; "+
			"give each a clients.mountPath of its own in spec.variants[].fileSystem", first.name, second.name, a.MountPath)
	}
	return nil
}

// devicesOf returns the disks that targets name, as "id of node", with those for external logs.
func devicesOf(targets v1alpha1.TargetsSpec) map[string]bool {
	out := map[string]bool{}
	for _, d := range targets.Devices {
		out[fmt.Sprintf("%s of node %s", d.ID, d.Node)] = true
		if d.LogDevice != "" {
			out[fmt.Sprintf("%s of node %s", d.LogDevice, d.Node)] = true
		}
	}
	return out
}
