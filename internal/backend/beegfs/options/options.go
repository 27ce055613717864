// Package options lists every option of the daemons and the client of BeeGFS 7.4 and 8, with its type and its owner, and writes their
// configuration files.
package options

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Render returns the whole configuration file of a daemon ("mgmtd", "meta", "storage" or "client") of a version. It writes every option
// that the daemon has, sorted: the images ship no configuration, and the compiled values differ from those that BeeGFS ships. The values
// are those of the configuration file that BeeGFS ships or, if it has none, the compiled ones. Three kinds of values replace them: owned,
// which the operator sets itself; typed, which come from a field of the spec or are computed (such as the limits of capacity pools); and
// those of the user.
//
// A user's option is refused by name, as field.<name>, in four cases: it is owned, a field of the spec sets it, the daemon of that version
// does not have it, or its value has the wrong type. A user may replace the values that the operator computes.
//
// mgmtd of BeeGFS 8 reads TOML, with tables. The name of an option in a table is that of the table, a dash and that of the option:
// space-low in the table cap-pool-meta-limits is cap-pool-meta-limits-space-low. Texts get their quotes here. An option without a value is
// left out, because TOML has no empty value.
func Render(daemon, version, field string, owned, typed map[string]string, user v1alpha1.Options) (string, error) {
	options := optionsOf(daemon, version)
	values, err := operatorsValues(daemon, version, options, owned, typed)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(user)) {
		o, known := options[name]
		if !known {
			return "", unknownOption(daemon, version, field, name, options)
		}
		if err := refusedOption(field, o, owned); err != nil {
			return "", err
		}
		if !o.kind.ok(string(user[name])) {
			return "", backend.Invalid(v1alpha1.ReasonOptionRefused, "%s.%s is %q, and must be %s", field, name, user[name], o.kind.want)
		}
		values[name] = string(user[name])
	}
	if err := fitTogether(field, values); err != nil {
		return "", err
	}
	if inTOML(daemon, version) {
		return asTOML(options, values), nil
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(strings.TrimRight(name+" = "+values[name], " ") + "\n")
	}
	return b.String(), nil
}

// Known is true when a daemon of a version has an option.
func Known(daemon, version, name string) bool {
	_, known := optionsOf(daemon, version)[name]
	return known
}

// operatorsValues returns the values of all options without those of the user. An invalid value is a mistake of the operator, except for a
// number from a field of the spec.
func operatorsValues(daemon, version string, options map[string]option, owned, typed map[string]string) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		o := options[name]
		given, isOwned := owned[name]
		fromField, isTyped := typed[name]
		switch {
		case o.unwritten:
			continue
		case isOwned:
			values[name] = given
		case isTyped:
			values[name] = fromField
		case o.needed:
			return nil, fmt.Errorf("%s of beegfs-%s %s has no value; the operator has to set it", name, daemon, version)
		default:
			values[name] = o.standing()
		}
		// $(NAME) has a value only on the node.
		if (isOwned || isTyped) && !strings.Contains(values[name], "$(") && !o.kind.ok(values[name]) {
			return nil, backend.Invalid(v1alpha1.ReasonOptionRefused, "%s of beegfs-%s would be %q, and must be %s%s",
				name, daemon, values[name], o.kind.want, instead(o))
		}
	}
	for _, set := range []map[string]string{owned, typed} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if _, known := values[name]; !known {
				return nil, fmt.Errorf("the operator sets %s, which is no option of beegfs-%s %s", name, daemon, version)
			}
		}
	}
	return values, nil
}

// instead returns the end of the sentence about an option that a field of the spec sets.
func instead(o option) string {
	if o.field == "" {
		return ""
	}
	return "; set " + o.field + " instead"
}

// refusedOption returns the reason why a user may not set an option that the daemon has.
func refusedOption(field string, o option, owned map[string]string) error {
	_, isOwned := owned[o.name]
	switch {
	case o.field != "":
		return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s.%s can't be set there%s", field, o.name, instead(o))
	case isOwned || o.operators:
		because := "is set by the operator itself and can't be changed"
		if o.because != "" {
			because = o.because
		}
		return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s.%s %s; remove it", field, o.name, because)
	}
	return nil
}

// unknownOption refuses an option that the daemon does not have, and suggests a similar one.
func unknownOption(daemon, version, field, name string, options map[string]option) error {
	sentence := fmt.Sprintf("%s.%s is no option of beegfs-%s %s", field, name, daemon, version)
	for _, pair := range renamedOptions {
		for _, other := range pair {
			o, known := options[other]
			if !known || !slices.Contains(pair[:], name) {
				continue
			}
			switch {
			case o.field != "":
				return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s: there it is %s, which is set from %s; remove it", sentence, other, o.field)
			case o.operators:
				return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s: there it is %s, which the operator sets itself; remove it", sentence, other)
			}
			return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s: there it is %s; set that instead", sentence, other)
		}
	}
	if near := nearest(name, options); near != "" {
		return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s; did you mean %s?", sentence, near)
	}
	return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s; correct its name or remove it", sentence)
}

// nearest returns the option with the most similar name among those that a user may set, empty when none is similar.
func nearest(name string, options map[string]option) string {
	best, least := "", min(4, 1+len(name)/3)
	for _, other := range slices.Sorted(maps.Keys(options)) {
		if d := distance(strings.ToLower(name), strings.ToLower(other)); d < least && refusedOption("", options[other], nil) == nil {
			best, least = other, d
		}
	}
	return best
}

// distance counts the characters to add, to remove or to change between two texts (Levenshtein's distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// fitTogether refuses values that a daemon accepts one by one but not together: with them, it would stop at its start.
func fitTogether(field string, values map[string]string) error {
	invalid := func(format string, args ...any) error {
		return backend.Invalid(v1alpha1.ReasonOptionRefused, field+": "+format, args...)
	}
	if values["quotaQueryType"] == "range" && (values["quotaQueryUIDRange"] == "" || values["quotaQueryGIDRange"] == "") {
		return invalid("quotaQueryType range needs quotaQueryUIDRange and quotaQueryGIDRange; set both")
	}
	if values["quota-enforce"] == "true" && values["quota-enable"] != "true" {
		return invalid("quota-enforce needs quota-enable; set both to true")
	}
	for _, role := range []string{"meta", "storage"} {
		static, dynamic := "cap-pool-"+role+"-limits-", "cap-pool-dynamic-"+role+"-limits-"
		given := 0
		for _, name := range dynamicLimits {
			if values[dynamic+name] != "" {
				given++
			}
		}
		if given != 0 && given != len(dynamicLimits) {
			return invalid("the options of the table %s are set all together or not at all: %s", strings.TrimSuffix(dynamic, "-"),
				dynamic+strings.Join(dynamicLimits, ", "+dynamic))
		}
		for _, pair := range [][2]string{
			{static + "inodes-low", static + "inodes-emergency"}, {static + "space-low", static + "space-emergency"},
			{dynamic + "inodes-low", dynamic + "inodes-emergency"}, {dynamic + "space-low", dynamic + "space-emergency"},
			{dynamic + "inodes-low", static + "inodes-low"}, {dynamic + "inodes-emergency", static + "inodes-emergency"},
			{dynamic + "space-low", static + "space-low"}, {dynamic + "space-emergency", static + "space-emergency"},
		} {
			higher, ok1 := quantityOf(values[pair[0]])
			lower, ok2 := quantityOf(values[pair[1]])
			if ok1 && strings.Contains(values[pair[1]], "$(") || ok2 && strings.Contains(values[pair[0]], "$(") {
				return invalid("%s and %s depend on each other, and the operator works out the one that is not set; set both", pair[0], pair[1])
			}
			if ok1 && ok2 && higher < lower {
				return invalid("%s (%s) must not be lower than %s (%s)", pair[0], values[pair[0]], pair[1], values[pair[1]])
			}
		}
	}
	return nil
}

// inTOML is true for the management service of BeeGFS 8 and later.
func inTOML(daemon, version string) bool { return daemon == "mgmtd" && !olderThan(version, "8.0.0") }

// asTOML writes the options that have a value: first those outside of tables, because all lines after the head of a table belong to it.
func asTOML(options map[string]option, values map[string]string) string {
	tables := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] == "" {
			continue
		}
		o, value := options[name], values[name]
		if o.kind.form != nil {
			value = o.kind.form(value)
		}
		tables[o.table] = append(tables[o.table], strings.TrimPrefix(strings.TrimPrefix(name, o.table), "-")+" = "+value+"\n")
	}
	var b strings.Builder
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		if table != "" {
			b.WriteString("\n[" + table + "]\n")
		}
		b.WriteString(strings.Join(tables[table], ""))
	}
	return b.String()
}

// OfflineTimeouts returns the seconds without contact after which each role considers a server offline: the user's value, or the one that
// BeeGFS ships. A value that can't be read counts as not set; Render refuses it.
func OfflineTimeouts(config v1alpha1.BeeGFSConfig) (management, metadata, storage, client int64) {
	read := func(options v1alpha1.Options, shipped int64, names ...string) int64 {
		for _, name := range names {
			if n, ok := secondsOf(string(options[name])); ok {
				return n
			}
		}
		return shipped
	}
	const name = "sysTargetOfflineTimeoutSecs"
	return read(config.Management, 180, "node-offline-timeout", name), read(config.Metadata, 180, name),
		read(config.Storage, 180, name), read(config.Client, 900, name)
}

// ConsistentTimeouts refuses values of sysTargetOfflineTimeoutSecs that contradict each other. If one daemon considers a server offline and
// another one considers it online, the two copies of a mirrored file can diverge. So all servers must have the same value, and clients at
// least twice as much (beegfs-mgmtd.conf, beegfs-meta.conf and beegfs-client.conf, 7.4.6; beegfs-mgmtd.toml, 8.3.1).
func ConsistentTimeouts(config v1alpha1.BeeGFSConfig) error {
	management, metadata, storage, client := OfflineTimeouts(config)
	if management != metadata || metadata != storage {
		return backend.Invalid(v1alpha1.ReasonOptionRefused, "the time after which a server is offline must be the same for all servers, and is "+
			"%d s in spec.beegfs.config.management (sysTargetOfflineTimeoutSecs; node-offline-timeout in BeeGFS 8), %d s in spec.beegfs.config.metadata and %d s "+
			"in spec.beegfs.config.storage (sysTargetOfflineTimeoutSecs; 180 s where it is not set); set all three to the same",
			management, metadata, storage)
	}
	if client < 2*management {
		return backend.Invalid(v1alpha1.ReasonOptionRefused, "spec.beegfs.config.client.sysTargetOfflineTimeoutSecs is %d s (900 s where it is not "+
			"set), and must be at least twice the %d s of the servers; set it to %d or more", client, management, 2*management)
	}
	return nil
}

// olderThan is true when version is older than other; both are like 8.3.1.
func olderThan(version, other string) bool { return backend.CompareVersions(version, other) < 0 }
