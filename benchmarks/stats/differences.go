package stats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// differences says what is not the same on both sides. Refused is what makes the numbers of the two mean different things: the tool and
// what it was told to do, the statistic, the units, and whether caches were dropped. Differs is where, on what and with which versions the
// same was done. Of a published table only its parameters and units are known.
func differences(pair Pair) results.Comparison {
	out := results.Comparison{Of: pair.Of}
	here, there := pair.Run, pair.Baseline
	refuse := func(what, a, b string) { out.Refused = added(out.Refused, what, a, b) }
	differ := func(what, a, b string) { out.Differs = added(out.Differs, what, a, b) }
	constants(here.Points, there.Points, refuse, differ)
	units(here.Points, there.Points, refuse)
	if here.Spec.ToolName() == "" || there.Spec.ToolName() == "" {
		return out
	}
	refuse("spec.tool", string(here.Spec.ToolName()), string(there.Spec.ToolName()))
	refuse("spec.statistic", statisticOf(here), statisticOf(there))
	refuse("spec.caches", cachesOf(here), cachesOf(there))
	if here.Spec.ToolName() == there.Spec.ToolName() {
		options(here, there, refuse, differ)
	}
	differ("spec.warmUp", text(here.Spec.WarmUp), text(there.Spec.WarmUp))
	differ("spec.clients.spread", spreadOf(here), spreadOf(there))
	differ("spec.clients.maxProcessesPerNode",
		fmt.Sprint(here.Spec.Clients.MaxProcessesPerNode), fmt.Sprint(there.Spec.Clients.MaxProcessesPerNode))
	provenance(here, there, func(what, a, b string) {
		if a != "" && b != "" { // what one side does not say is not known to differ
			differ(what, a, b)
		}
	})
	return out
}

// added adds a difference, if it is one.
func added(all []results.Difference, what, here, there string) []results.Difference {
	if here == there {
		return all
	}
	const most = 96
	shown := func(value string) string { return v1alpha1.Cut(cmp.Or(value, "not set"), most) }
	return append(all, results.Difference{What: what, Here: shown(here), There: shown(there)})
}

// certainty are parameters that say how well something is measured, and not what.
var certainty = []v1alpha1.SweepName{"mdtest.iterations", "ior.iterations", "postmark.seed"}

// constants are the parameters that do not vary on either side: those of the tool say what was measured.
func constants(points, baseline []results.Point, refuse, differ func(what, a, b string)) {
	here, there := valuesOf(points), valuesOf(baseline)
	for _, name := range results.Names(points) {
		if len(here[name]) != 1 || len(there[name]) != 1 || here[name][0] == there[name][0] || there[name][0] == results.BestOf {
			continue
		}
		say := differ
		if strings.Contains(string(name), ".") && !slices.Contains(certainty, name) {
			say = refuse
		}
		say(string(name), first(points, name), first(baseline, name))
	}
}

// first is the first value of a parameter, as it is written.
func first(points []results.Point, name v1alpha1.SweepName) string {
	for _, p := range points {
		if value := p.Value(name); value != "" {
			return value
		}
	}
	return ""
}

// units are those of a metric that both sides have and that have none in common.
func units(points, baseline []results.Point, refuse func(what, a, b string)) {
	here, there := unitsOf(points), unitsOf(baseline)
	for _, name := range slices.Sorted(maps.Keys(here)) {
		other := there[name]
		common := slices.ContainsFunc(here[name], func(unit string) bool { return slices.Contains(other, unit) })
		if len(other) > 0 && !common {
			refuse("the unit of "+name, strings.Join(here[name], " and "), strings.Join(other, " and "))
		}
	}
}

func unitsOf(points []results.Point) map[string][]string {
	out := map[string][]string{}
	for _, p := range points {
		for _, m := range p.Metrics {
			if !slices.Contains(out[m.Name], m.Unit) {
				out[m.Name] = append(out[m.Name], m.Unit)
			}
		}
	}
	return out
}

func statisticOf(run results.Run) string {
	return string(cmp.Or(run.Spec.Statistic, v1alpha1.StatisticMean))
}

func spreadOf(run results.Run) string {
	return string(cmp.Or(run.Spec.Clients.Spread, v1alpha1.SpreadEven))
}

func cachesOf(run results.Run) string {
	if run.Spec.Caches == nil {
		return "not dropped"
	}
	return fmt.Sprintf("dropped of %s before %s", run.Spec.Caches.Drop, cmp.Or(run.Spec.Caches.Before, v1alpha1.CachesBeforeRepetitions))
}

// ignored are options that say nothing of what was measured, or that are compared elsewhere.
var ignored = []string{"custom.parameters", "custom.metrics", "custom.versionCommand", "custom.spaceBytes"}

// options are the options of the tool that no sweep can vary, and those that a document made from a status does not list for each point.
// The API server fills in defaults; where a document is of no cluster, an option that only one side has may be the default of the other.
func options(here, there results.Run, refuse, differ func(what, a, b string)) {
	member := string(here.Spec.ToolName())
	a, b := fields(here.Spec, member), fields(there.Spec, member)
	parameters := slices.Concat(results.Names(here.Points), results.Names(there.Points))
	for _, key := range slices.Sorted(maps.Keys(union(a, b))) {
		name := member + "." + key
		if slices.Contains(parameters, v1alpha1.SweepName(name)) || slices.Contains(ignored, name) {
			continue
		}
		_, isHere := a[key]
		_, isThere := b[key]
		switch saved := here.UID == "" || there.UID == ""; {
		case slices.Contains(certainty, v1alpha1.SweepName(name)):
			differ(name, text(a[key]), text(b[key]))
		case isFlag(a[key]) || isFlag(b[key]):
			refuse(name, text(a[key] == true), text(b[key] == true)) // one that is not set is left out
		case saved && isHere != isThere && !isList(a[key]) && !isList(b[key]):
			differ(name, text(a[key]), text(b[key]))
		default:
			refuse(name, text(a[key]), text(b[key]))
		}
	}
	custom(here.Spec.Custom, there.Spec.Custom, refuse)
}

// custom compares how the metrics are found that both sides have.
func custom(here, there *v1alpha1.CustomSpec, refuse func(what, a, b string)) {
	if here == nil || there == nil {
		return
	}
	for _, m := range here.Metrics {
		i := slices.IndexFunc(there.Metrics, func(o v1alpha1.CustomMetric) bool { return o.Name == m.Name && o.Unit == m.Unit })
		if i >= 0 {
			refuse("custom.metrics, "+m.Name, text(m), text(there.Metrics[i]))
		}
	}
}

func isFlag(value any) bool { _, is := value.(bool); return is }
func isList(value any) bool { _, is := value.([]any); return is }

// fields are those of a member of the spec that are set.
func fields(spec v1alpha1.BenchmarkRunSpec, member string) map[string]any {
	var all map[string]json.RawMessage
	var out map[string]any
	if raw, err := json.Marshal(spec); err == nil {
		_ = json.Unmarshal(raw, &all)         // it was written just now
		_ = json.Unmarshal(all[member], &out) // a member that is not set has no fields
	}
	return out
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}

// text writes a value as JSON, a word without quotation marks, and nothing for none.
func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil || string(raw) == "null" {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}

// provenance compares what the two were measured on and with.
func provenance(here, there results.Run, differ func(what, a, b string)) {
	a, b := here.Provenance, there.Provenance
	version := func(p results.Provenance) string { return strings.SplitN(p.FileSystem, ", ", 2)[0] } // the uid and the generation follow
	differ("the filesystem's version", version(a), version(b))
	differ("spec.fileSystem.name", here.Spec.FileSystem.Name, there.Spec.FileSystem.Name)
	differ("the FileSystem's spec", changedFields(a.FileSystemSpec, b.FileSystemSpec), changedFields(b.FileSystemSpec, a.FileSystemSpec))
	differ("the daemons' configuration", short(a.ConfigHash), short(b.ConfigHash))
	servers(a, b, differ)
	differ("the daemons' pinning", a.Pinning, b.Pinning)
	differ("the pods' changes by admission", podChanges(a), podChanges(b))
	differ("the tool's version", a.ToolVersion, b.ToolVersion)
	differ("the image", a.Image, b.Image)
	if a.Image == b.Image {
		differ("the image's digest", a.ImageID, b.ImageID)
	}
	for _, fact := range []struct {
		what string
		of   func(v1alpha1.NodeProvenance) string
	}{
		{"the clients", func(n v1alpha1.NodeProvenance) string { return n.Node }},
		{"the clients' kernel", func(n v1alpha1.NodeProvenance) string { return n.Kernel }},
		{"the clients' processors", func(n v1alpha1.NodeProvenance) string { return n.CPUModel }},
	} {
		differ(fact.what, clients(a, fact.of), clients(b, fact.of))
	}
	placements(here.Points, there.Points, differ)
}

// podChanges are what admission changed of the pods of a run, or that it changed nothing. Of a document of no cluster nothing is known.
func podChanges(p results.Provenance) string {
	if p.FileSystem == "" {
		return ""
	}
	return cmp.Or(strings.Join(p.PodChanges, ", "), "none recorded")
}

// servers compares how many servers and targets there were, of which versions and sizes. Of one and the same FileSystem, it also tells that
// as many others were there.
func servers(a, b results.Provenance, differ func(what, a, b string)) {
	sameServer := func(x, y v1alpha1.ServerCount) bool { return x == y }
	// The size of a directory changes with whatever else is on its disk.
	const percent = 0.01
	sameTargets := func(x, y v1alpha1.TargetCount) bool {
		return x.StoragePool == y.StoragePool && x.Count == y.Count &&
			math.Abs(float64(x.CapacityBytes-y.CapacityBytes)) <= percent*float64(max(x.CapacityBytes, y.CapacityBytes))
	}
	before := [2]string{others(a.ServerCounts, b.ServerCounts, sameServer), others(a.TargetCounts, b.TargetCounts, sameTargets)}
	differ("the number of servers", before[0], others(b.ServerCounts, a.ServerCounts, sameServer))
	differ("the number of targets", before[1], others(b.TargetCounts, a.TargetCounts, sameTargets))
	uid := func(p results.Provenance) string {
		_, rest, _ := strings.Cut(p.FileSystem, ", ")
		return strings.SplitN(rest, ", ", 2)[0]
	}
	if uid(a) == uid(b) && before == [2]string{} {
		differ("the hash of all servers and targets", short(a.MembersHash), short(b.MembersHash))
	}
}

// others writes what is counted on one side and not, or otherwise, on the other; nothing when all is the same, or one side was not counted.
func others[T fmt.Stringer](here, there []T, same func(a, b T) bool) string {
	in := func(one T, all []T) bool {
		return slices.ContainsFunc(all, func(other T) bool { return same(one, other) })
	}
	var words []string
	for _, one := range here {
		if !in(one, there) {
			words = append(words, one.String())
		}
	}
	more := slices.ContainsFunc(there, func(one T) bool { return !in(one, here) })
	switch {
	case len(here) == 0 || len(there) == 0:
		return ""
	case len(words) == 0 && more:
		return "without that"
	}
	return strings.Join(words, ", ")
}

// placements names the first points of the same parameters whose processes were placed otherwise.
func placements(points, baseline []results.Point, differ func(what, a, b string)) {
	keys := keysOf(points, baseline)
	others := map[string]string{}
	for _, p := range baseline {
		if key, complete := keyOf(p, keys); complete {
			others[key] = p.Placement
		}
	}
	for _, p := range points {
		key, complete := keyOf(p, keys)
		if other := others[key]; complete && p.Placement != "" && other != "" && other != p.Placement {
			differ(fmt.Sprintf("the placement of point %d", p.Index), p.Placement, other)
			return
		}
	}
}

// clients are the different values of a fact of the clients.
func clients(p results.Provenance, fact func(v1alpha1.NodeProvenance) string) string {
	var out []string
	for _, c := range p.Clients {
		if value := fact(c); value != "" && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// changedFields writes the fields of a FileSystem's spec that are not the same in another one.
func changedFields(spec, other *v1alpha1.FileSystemSpec) string {
	if spec == nil || other == nil {
		return ""
	}
	all := func(s *v1alpha1.FileSystemSpec) map[string]json.RawMessage {
		var out map[string]json.RawMessage
		if raw, err := json.Marshal(s); err == nil {
			_ = json.Unmarshal(raw, &out) // it was written just now
		}
		return out
	}
	a, b := all(spec), all(other)
	changed := map[string]json.RawMessage{}
	for name := range a {
		if string(a[name]) != string(b[name]) {
			changed[name] = a[name]
		}
	}
	if len(changed) == 0 {
		return "without that"
	}
	return text(changed)
}

// short is the start of a hash.
func short(hash string) string {
	const most = 12
	return hash[:min(len(hash), most)]
}
