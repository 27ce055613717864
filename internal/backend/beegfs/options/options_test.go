package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// sampleOptions returns the values that the operator passes to render for a daemon.
func sampleOptions(daemon, version string) (owned, typed map[string]string) {
	eight := !olderThan(version, "8.0.0")
	if inTOML(daemon, version) {
		return map[string]string{
			"db-file": "$(TARGET)/mgmtd.sqlite", "beemsg-port": "8008", "grpc-port": "8010", "auth-file": "/etc/parallelfs-auth/conn.auth",
		}, map[string]string{"tls-disable": "true", "interfaces": "$(NODE_INTERFACE)"}
	}
	owned = map[string]string{"connAuthFile": "/etc/parallelfs-auth/conn.auth", "sysMgmtdHost": "10.0.0.1"}
	typed = map[string]string{"connInterfacesFile": "/run/parallelfs/interfaces", "connUseRDMA": "false"}
	ports := map[string]string{"Mgmtd": "8008"}
	switch daemon {
	case "mgmtd":
		owned["storeMgmtdDirectory"] = "$(TARGET)"
		delete(owned, "sysMgmtdHost")
		delete(typed, "connUseRDMA")
	case "meta":
		owned["storeMetaDirectory"] = "$(TARGET)"
		ports["Meta"] = "8016"
		typed["tuneNumWorkers"], typed["tuneTargetChooser"] = "16", "roundrobin"
	case "storage":
		owned["storeStorageDirectory"] = "$(TARGETS)"
		ports["Storage"] = "8032"
		typed["tuneNumWorkers"] = "12"
	case "client":
		ports["Client"] = "$(FREE_PORT)"
	}
	for name, port := range ports {
		switch {
		case eight:
			owned["conn"+name+"Port"] = port
		case name == "Client":
			owned["connClientPortUDP"] = port
		default:
			owned["conn"+name+"PortUDP"], owned["conn"+name+"PortTCP"] = port, port
		}
	}
	return owned, typed
}

// readRendered reads a rendered file: the options of a table of TOML are named as in render.
func readRendered(content string) map[string]string {
	values, table := map[string]string{}, ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		name, value, isOption := strings.Cut(line, "=")
		switch {
		case isOption:
			values[table+strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"`)
		case line != "":
			table = strings.Trim(line, "[]") + "-"
		}
	}
	return values
}

// testdata/options-<daemon>-<version>.tsv has one line for each option of the daemon: its name, how the daemon reads it, and its value in
// the file that BeeGFS ships, or else the compiled one.
func TestEveryOptionOfADaemonIsRendered(t *testing.T) {
	lists, err := filepath.Glob("testdata/options-*.tsv")
	if err != nil || len(lists) < 16 {
		t.Fatalf("%d lists (%v)", len(lists), err)
	}
	for _, list := range lists {
		_, daemon, _ := strings.Cut(strings.TrimSuffix(filepath.Base(list), ".tsv"), "-")
		daemon, version, _ := strings.Cut(daemon, "-")
		t.Run(daemon+" of "+version, func(t *testing.T) {
			g := NewWithT(t)
			recorded, err := os.ReadFile(list)
			g.Expect(err).NotTo(HaveOccurred())
			owned, typed := sampleOptions(daemon, version)
			content, err := Render(daemon, version, "spec.config", owned, typed, nil)
			g.Expect(err).NotTo(HaveOccurred())
			rendered, options := readRendered(content), optionsOf(daemon, version)

			expected := map[string]string{}
			for line := range strings.Lines(string(recorded)) {
				field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				g.Expect(field).To(HaveLen(3), line)
				name, reads, shipped := field[0], field[1], field[2]
				o := options[name]
				g.Expect(options).To(HaveKey(name))
				g.Expect(o.kind.read).To(Equal(reads), name)
				g.Expect(o.shipped).To(Equal(shipped), name)
				if o.unwritten {
					continue
				}
				value := shipped
				if o.operators || o.ours != "" {
					value = o.ours
				}
				for _, set := range []map[string]string{owned, typed} {
					if v, ok := set[name]; ok {
						value = v
					}
				}
				if value != "" || !inTOML(daemon, version) {
					expected[name] = strings.TrimSuffix(strings.TrimPrefix(value, `["`), `"]`)
				}
			}
			if v, ok := rendered["interfaces"]; ok {
				g.Expect(v).To(Equal(`["$(NODE_INTERFACE)"]`))
				rendered["interfaces"] = "$(NODE_INTERFACE)"
			}
			g.Expect(rendered).To(Equal(expected))
		})
	}
}

func TestAValueThatBeeGFSShipsIsOfItsType(t *testing.T) {
	for _, version := range []string{"7.4.0", "7.4.3", "7.4.6", "7.4.7", "8.0.1", "8.3.1"} {
		for _, daemon := range []string{"mgmtd", "meta", "storage", "client"} {
			for name, o := range optionsOf(daemon, version) {
				// beegfs-meta.conf ships 0 workers, which trap 8 is about; an option without a value is left out, or is none.
				if value := o.standing(); value != "" && !o.needed {
					NewWithT(t).Expect(o.kind.ok(value)).To(BeTrue(), "%s of %s %s: %q", name, daemon, version, value)
				}
			}
		}
	}
}

func TestTheUsersValueOverridesTheDefault(t *testing.T) {
	cases := map[string]struct{ daemon, version, name, value, line string }{
		"a number":                   {"meta", "7.4.6", "connMaxInternodeNum", "64", "connMaxInternodeNum = 64"},
		"a size":                     {"storage", "8.3.1", "tuneFileReadAheadSize", "2m", "tuneFileReadAheadSize = 2m"},
		"a word instead of a number": {"client", "7.4.6", "connRDMAFragmentSize", "none", "connRDMAFragmentSize = none"},
		"a list of words": {"client", "8.3.1", "sysFileEventLogMask", "flush,open-write",
			"sysFileEventLogMask = flush,open-write"},
		"a word of TOML":              {"mgmtd", "8.3.1", "log-level", "info", `log-level = "info"`},
		"a number of TOML":            {"mgmtd", "8.3.1", "connection-limit", "24", "connection-limit = 24"},
		"a range of TOML":             {"mgmtd", "8.3.1", "quota-user-ids-range", "1000-1100", `quota-user-ids-range = "1000-1100"`},
		"an option of a table":        {"mgmtd", "8.3.1", "cap-pool-meta-limits-space-low", "20GiB", "\n[cap-pool-meta-limits]\n"},
		"the same, without its table": {"mgmtd", "8.3.1", "cap-pool-meta-limits-space-low", "20GiB", `space-low = "20GiB"`},
		"the operator's own default, which a user may change": {"client", "7.4.6", "sysMountSanityCheckMS", "11000",
			"sysMountSanityCheckMS = 11000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			owned, typed := sampleOptions(c.daemon, c.version)
			without, err := Render(c.daemon, c.version, "spec.config", owned, typed, nil)
			g.Expect(err).NotTo(HaveOccurred())
			content, err := Render(c.daemon, c.version, "spec.config", owned, typed, v1alpha1.Options{c.name: v1alpha1.OptionValue(c.value)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(content).To(ContainSubstring(c.line))
			g.Expect(content).NotTo(Equal(without))
		})
	}
}

func TestAUserMayOverrideComputedValues(t *testing.T) {
	g := NewWithT(t)
	owned, typed := sampleOptions("mgmtd", "7.4.6")
	typed["tuneStorageSpaceLowLimit"] = "$(STORAGE_SPACE_LOW)"
	content, err := Render("mgmtd", "7.4.6", "spec.beegfs.config.management", owned, typed, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(ContainSubstring("tuneStorageSpaceLowLimit = $(STORAGE_SPACE_LOW)\n"))
	content, err = Render("mgmtd", "7.4.6", "spec.beegfs.config.management", owned, typed, v1alpha1.Options{"tuneStorageSpaceLowLimit": "300G"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(ContainSubstring("tuneStorageSpaceLowLimit = 300G\n"))
}

// The management service of BeeGFS 8 stops when a low limit is below the emergency limit, and the limits that the operator computes have
// values only on the node.
func TestAUserSetsBothOfTwoDependentLimits(t *testing.T) {
	g := NewWithT(t)
	owned, typed := sampleOptions("mgmtd", "8.3.1")
	typed["cap-pool-storage-limits-space-low"] = "$(STORAGE_SPACE_LOW)"
	typed["cap-pool-storage-limits-space-emergency"] = "$(STORAGE_SPACE_EMERGENCY)"
	user := v1alpha1.Options{"cap-pool-storage-limits-space-low": "300GiB"}
	_, err := Render("mgmtd", "8.3.1", "spec.beegfs.config.management", owned, typed, user)
	g.Expect(err).To(MatchError("spec.beegfs.config.management: cap-pool-storage-limits-space-low and cap-pool-storage-limits-space-emergency " +
		"depend on each other, and the operator works out the one that is not set; set both"))
	user["cap-pool-storage-limits-space-emergency"] = "30GiB"
	content, err := Render("mgmtd", "8.3.1", "spec.beegfs.config.management", owned, typed, user)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(ContainSubstring("space-emergency = \"30GiB\"\nspace-low = \"300GiB\"\n"))
}

// refusalOf is the sentence with which render refuses one option.
func refusalOf(t *testing.T, daemon, version, field, name, value string) string {
	t.Helper()
	owned, typed := sampleOptions(daemon, version)
	_, err := Render(daemon, version, field, owned, typed, v1alpha1.Options{name: v1alpha1.OptionValue(value)})
	invalid := &backend.InvalidSpecError{}
	NewWithT(t).Expect(err).To(BeAssignableToTypeOf(invalid))
	NewWithT(t).Expect(err).To(HaveField("Reason", v1alpha1.ReasonOptionRefused))
	return err.Error()
}

func TestAnOptionIsRefusedByName(t *testing.T) {
	const (
		bySelf = "is set by the operator itself and can't be changed; remove it"
		noFile = "names a file, a directory or a socket, and the daemon's pod has none of yours; remove it"
	)
	cases := map[string]struct{ daemon, version, name, value, sentence string }{
		"one that the operator works with": {"meta", "7.4.6", "storeMetaDirectory", "/data", bySelf},
		"a port":                           {"storage", "8.3.1", "connStoragePort", "8003", bySelf},
		"an argument of the daemon": {"client", "7.4.6", "cfgFile", "/etc/beegfs/beegfs-client.conf",
			"is an argument of the daemon that the operator gives; remove it"},
		"the secret turned off":                          {"meta", "8.3.1", "connDisableAuthentication", "true", bySelf},
		"the secret of the management turned off":        {"mgmtd", "8.3.1", "auth-disable", "true", bySelf},
		"new servers turned off":                         {"mgmtd", "7.4.6", "sysAllowNewServers", "false", bySelf},
		"a NUMA zone, which would undo the pinning":      {"meta", "7.4.6", "tuneBindToNumaZone", "0", bySelf},
		"threads on all NUMA nodes, which would as well": {"storage", "7.4.6", "tuneWorkerNumaAffinity", "true", bySelf},
		"one that a field of the spec sets": {"storage", "7.4.6", "tuneNumWorkers", "8",
			"can't be set there; set spec.storagePools[].beegfs.workerThreads instead"},
		"interfaces": {"client", "8.3.1", "connInterfacesFile", "/etc/x",
			"can't be set there; set spec.network.interfaces instead"},
		"a license":                {"mgmtd", "8.3.1", "license-cert-file", "/x", "can't be set there; set spec.beegfs.license instead"},
		"a file that no pod has":   {"client", "7.4.6", "tunePreferredMetaFile", "/etc/meta", noFile},
		"networks":                 {"storage", "7.4.6", "connNetFilterFile", "/etc/net", "can't be set there; set spec.beegfs.networks instead"},
		"a socket that no pod has": {"meta", "7.4.6", "sysFileEventLogTarget", "unix:/x", noFile},
		"one that beegfs-ctl would trip over": {"client", "7.4.6", "remapConnectionFailureStatus", "5",
			"is not known to beegfs-ctl, which reads the same file; remove it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(refusalOf(t, c.daemon, c.version, "spec.beegfs.config.x", c.name, c.value)).
				To(Equal("spec.beegfs.config.x." + c.name + " " + c.sentence))
		})
	}
}

func TestAnUnknownOptionIsRefusedWithWhatItMayHaveBeenMeantToBe(t *testing.T) {
	const nothingLike = "; correct its name or remove it"
	cases := map[string]struct{ daemon, version, name, value, sentence string }{
		"a typing error":                   {"storage", "7.4.6", "tuneFileReadSze", "1m", "; did you mean tuneFileReadSize?"},
		"large and small letters mixed up": {"mgmtd", "7.4.6", "loglevel", "3", "; did you mean logLevel?"},
		"one of another daemon":            {"storage", "7.4.6", "sysAllowUserSetPattern", "true", nothingLike},
		"one that came later":              {"client", "8.2.2", "tuneFileOpenRetryTimeoutMS", "1", nothingLike},
		"one that went":                    {"client", "8.3.1", "sysNoEnterpriseFeatureMsg", "true", nothingLike},
		"a port as in 7, in 8": {"meta", "8.3.1", "connMetaPortTCP", "8005",
			": there it is connMetaPort, which the operator sets itself; remove it"},
		"a port as in 8, in 7": {"meta", "7.4.6", "connMetaPort", "8005",
			": there it is connMetaPortUDP, which the operator sets itself; remove it"},
		"a limit as in 7, in 8": {"mgmtd", "8.3.1", "tuneMetaSpaceLowLimit", "1G",
			": there it is cap-pool-meta-limits-space-low; set that instead"},
		"a time as in 8, in 7": {"mgmtd", "7.4.6", "node-offline-timeout", "180s",
			": there it is sysTargetOfflineTimeoutSecs; set that instead"},
		"an old name that is still read": {"meta", "7.4.6", "tuneDefaultNumStripeNodes", "4",
			": there it is tuneDefaultNumStripeTargets; set that instead"},
		"one that is read and ignored": {"mgmtd", "7.4.6", "tuneMetaNodeAutoRemoveMins", "5", nothingLike},
		"the interfaces as in 7, in 8": {"mgmtd", "8.3.1", "connInterfacesFile", "/x",
			": there it is interfaces, which is set from spec.network.interfaces; remove it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(refusalOf(t, c.daemon, c.version, "spec.beegfs.config.x", c.name, c.value)).
				To(Equal("spec.beegfs.config.x." + c.name + " is no option of beegfs-" + c.daemon + " " + c.version + c.sentence))
		})
	}
}

func TestAValueIsRefusedThatIsNotOfItsType(t *testing.T) {
	cases := map[string]struct{ daemon, version, name, value, must string }{
		"a word for true or false":         {"meta", "7.4.6", "storeClientACLs", "enabled", "true or false"},
		"an empty value for true or false": {"meta", "7.4.6", "storeClientACLs", "", "true or false"},
		"text for a number":                {"meta", "7.4.6", "logLevel", "high", "a whole number from 0 to 5"},
		"a number that is too large":       {"meta", "7.4.6", "logLevel", "6", "a whole number from 0 to 5"},
		"a number with a fraction":         {"storage", "7.4.6", "connMaxInternodeNum", "1.5", "a whole number from 1 to 65535"},
		"a time that ends the daemon": {"storage", "7.4.6", "sysTargetOfflineTimeoutSecs", "29",
			"a whole number from 30 to 2147483647"},
		"clients forgotten too soon": {"mgmtd", "7.4.6", "tuneClientAutoRemoveMins", "4",
			"a whole number from 5 to 2147483647, or 0"},
		"a size in a form of Kubernetes": {"storage", "7.4.6", "tuneFileReadSize", "128Ki",
			"a size such as 512k, 4m or 1T, of 4096 bytes at least"},
		"a size with a letter BeeGFS ignores": {"mgmtd", "7.4.6", "tuneStorageSpaceLowLimit", "1E",
			"a size such as 512k, 4m or 1T"},
		"a size that is too large to be one": {"mgmtd", "7.4.6", "tuneStorageSpaceLowLimit", "16385P",
			"a size such as 512k, 4m or 1T"},
		"a chunk that is no power of two": {"meta", "7.4.6", "tuneDefaultChunkSize", "96k",
			"a power of two of at least 64k, such as 512k"},
		"two timeouts instead of three": {"meta", "7.4.6", "connMessagingTimeouts", "1,2",
			"3 whole numbers with commas between them"},
		"three timeouts instead of five": {"client", "7.4.6", "connRDMATimeouts", "0,0,0",
			"5 whole numbers with commas between them"},
		"a cache that can hang a node": {"client", "7.4.6", "tuneFileCacheType", "paged", "one of none, buffered, native"},
		"retries for ever":             {"client", "8.3.1", "connCommRetrySecs", "0", "a whole number from 1 to 2147483647"},
		"an event that came with BeeGFS 8": {"client", "7.4.6", "sysFileEventLogMask", "open-read",
			"none, or, with commas between them, some of flush, trunc, setattr, close, link-op, read"},
		"a network without its bits": {"meta", "7.4.6", "connNoDefaultRoute", "10.0.0.0",
			"networks with commas between them, such as 0.0.0.0/0"},
		"a variable of a file": {"meta", "7.4.6", "connNoDefaultRoute", "$(NODE_IP)/32",
			"networks with commas between them, such as 0.0.0.0/0"},
		"a time with an unknown unit": {"mgmtd", "8.3.1", "node-offline-timeout", "3min", "a time such as 180s, 30m or 2h"},
		"a quantity whose unit is ignored": {"mgmtd", "8.3.1", "cap-pool-meta-limits-space-low", "10g",
			"a number such as 10M, or a size such as 512GiB"},
		"a range that ends before it begins": {"mgmtd", "8.3.1", "quota-user-ids-range", "2000-1000",
			"a range of ids such as 1000-1100"},
		"a level as in 7, in 8":                   {"mgmtd", "8.3.1", "log-level", "3", "one of off, error, warn, info, debug, trace"},
		"quota ids from a file that is not there": {"mgmtd", "7.4.6", "quotaQueryType", "file", "one of system, range"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(refusalOf(t, c.daemon, c.version, "spec.beegfs.config.x", c.name, c.value)).
				To(Equal("spec.beegfs.config.x." + c.name + " is \"" + c.value + "\", and must be " + c.must))
		})
	}
}

func TestValuesAreRefusedThatDoNotFitTogether(t *testing.T) {
	cases := map[string]struct {
		version  string
		user     v1alpha1.Options
		sentence string
	}{
		"a range of ids that is not given": {"7.4.6", v1alpha1.Options{"quotaQueryType": "range", "quotaQueryUIDRange": "1000,1100"},
			"spec.beegfs.config.management: quotaQueryType range needs quotaQueryUIDRange and quotaQueryGIDRange; set both"},
		"quotas that are enforced and not counted": {"8.3.1", v1alpha1.Options{"quota-enforce": "true"},
			"spec.beegfs.config.management: quota-enforce needs quota-enable; set both to true"},
		"a low limit below that of an emergency": {"8.3.1", v1alpha1.Options{"cap-pool-storage-limits-space-low": "5GiB"},
			"spec.beegfs.config.management: cap-pool-storage-limits-space-low (5GiB) must not be lower than " +
				"cap-pool-storage-limits-space-emergency (10GiB)"},
		"a table of dynamic limits that is not complete": {"8.3.1", v1alpha1.Options{"cap-pool-dynamic-meta-limits-space-low": "50GiB"},
			"spec.beegfs.config.management: the options of the table cap-pool-dynamic-meta-limits are set all together or not at all: " +
				"cap-pool-dynamic-meta-limits-inodes-normal-threshold, "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			owned, typed := sampleOptions("mgmtd", c.version)
			_, err := Render("mgmtd", c.version, "spec.beegfs.config.management", owned, typed, c.user)
			g.Expect(err).To(BeAssignableToTypeOf(&backend.InvalidSpecError{}))
			g.Expect(err.Error()).To(HavePrefix(c.sentence))
		})
	}
}

// beegfs-ctl of BeeGFS 7 reads the file of the client, and versions after 8.3.1 do not have license-disable.
func TestOptionsThatOtherProgramsRefuseAreNeverWritten(t *testing.T) {
	for name, in := range map[string][2]string{
		"cfgFile": {"meta", "7.4.6"}, "remapConnectionFailureStatus": {"client", "7.4.6"}, "sysACLsRevalidate": {"client", "7.4.7"},
		"license-disable": {"mgmtd", "8.3.1"},
	} {
		g := NewWithT(t)
		owned, typed := sampleOptions(in[0], in[1])
		content, err := Render(in[0], in[1], "spec.config", owned, typed, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(readRendered(content)).NotTo(HaveKey(name))
		g.Expect(refusalOf(t, in[0], in[1], "spec.config", name, "false")).To(HaveSuffix("; remove it"))
	}
}

func TestTheOperatorCanNotForgetAValueOrMisspellAnOption(t *testing.T) {
	g := NewWithT(t)
	owned, typed := sampleOptions("storage", "7.4.6")
	delete(typed, "connInterfacesFile")
	_, err := Render("storage", "7.4.6", "spec.beegfs.config.storage", owned, typed, nil)
	g.Expect(err).To(MatchError("connInterfacesFile of beegfs-storage 7.4.6 has no value; the operator has to set it"))
	owned, typed = sampleOptions("storage", "7.4.6")
	owned["connStoragePort"] = "8032"
	_, err = Render("storage", "7.4.6", "spec.beegfs.config.storage", owned, typed, nil)
	g.Expect(err).To(MatchError("the operator sets connStoragePort, which is no option of beegfs-storage 7.4.6"))
}

func TestTraps(t *testing.T) {
	t.Run("trap 8: a server never counts the CPUs of the machine for itself", func(t *testing.T) {
		g := NewWithT(t)
		for _, version := range []string{"7.4.6", "8.3.1"} {
			g.Expect(refusalOf(t, "meta", version, "spec.beegfs.config.metadata", "tuneNumWorkers", "0")).
				To(Equal("spec.beegfs.config.metadata.tuneNumWorkers can't be set there; set spec.metadataServers.beegfs.workerThreads instead"))
			owned, typed := sampleOptions("meta", version)
			typed["tuneNumWorkers"] = "0"
			_, err := Render("meta", version, "spec.beegfs.config.metadata", owned, typed, nil)
			g.Expect(err).To(MatchError(ContainSubstring(`tuneNumWorkers of beegfs-meta would be "0", and must be a whole number from 1`)))
			delete(typed, "tuneNumWorkers")
			_, err = Render("meta", version, "spec.beegfs.config.metadata", owned, typed, nil)
			g.Expect(err).To(HaveOccurred())
		}
		g.Expect(refusalOf(t, "mgmtd", "7.4.6", "spec.beegfs.config.management", "tuneNumWorkers", "0")).To(ContainSubstring("a whole number from 1"))
	})
	t.Run("trap 10: BeeGFS is never asked to find the device of a directory, which node run has proven", func(t *testing.T) {
		g := NewWithT(t)
		for _, version := range []string{"7.4.6", "8.3.1"} {
			for _, daemon := range []string{"meta", "storage"} {
				owned, typed := sampleOptions(daemon, version)
				content, err := Render(daemon, version, "spec.config", owned, typed, nil)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(content).To(ContainSubstring("\nstoreFsUUID =\n"))
				g.Expect(content).To(ContainSubstring("\nstoreAllowFirstRunInit = false\n"))
				for name, value := range map[string]string{"storeFsUUID": "9c4b8c4e", "storeAllowFirstRunInit": "true"} {
					g.Expect(refusalOf(t, daemon, version, "spec.config", name, value)).To(ContainSubstring("set by the operator itself"))
				}
			}
		}
	})
	t.Run("trap 14: the time after which a server is offline is the same for all servers", func(t *testing.T) {
		// servers returns the timeouts of the management service, the metadata servers and the storage servers.
		servers := func(times ...v1alpha1.OptionValue) v1alpha1.BeeGFSConfig {
			config := v1alpha1.BeeGFSConfig{}
			for i, role := range []*v1alpha1.Options{&config.Management, &config.Metadata, &config.Storage} {
				if times[i] != "" {
					*role = v1alpha1.Options{"sysTargetOfflineTimeoutSecs": times[i]}
				}
			}
			return config
		}
		management8 := func(time v1alpha1.OptionValue, config v1alpha1.BeeGFSConfig) v1alpha1.BeeGFSConfig {
			config.Management = v1alpha1.Options{"node-offline-timeout": time}
			return config
		}
		clients := func(time v1alpha1.OptionValue, config v1alpha1.BeeGFSConfig) v1alpha1.BeeGFSConfig {
			config.Client = v1alpha1.Options{"sysTargetOfflineTimeoutSecs": time}
			return config
		}
		cases := map[string]struct {
			config  v1alpha1.BeeGFSConfig
			refused string
		}{
			"none is set":                      {servers("", "", ""), ""},
			"all are set to the same":          {servers("300", "300", "300"), ""},
			"the same, in BeeGFS 8":            {management8("5m", servers("", "300", "300")), ""},
			"the same as BeeGFS ships":         {servers("", "180", ""), ""},
			"the metadata servers differ":      {servers("", "300", ""), "180 s in spec.beegfs.config.management"},
			"the management service differs":   {management8("400s", servers("", "300", "300")), "400 s in spec.beegfs.config.management"},
			"the storage servers differ":       {servers("300", "300", ""), "180 s in spec.beegfs.config.storage"},
			"clients are more patient":         {clients("1200", servers("", "", "")), ""},
			"clients give up too early":        {clients("359", servers("", "", "")), "set it to 360 or more"},
			"servers take longer than clients": {servers("500", "500", "500"), "spec.beegfs.config.client.sysTargetOfflineTimeoutSecs is 900 s"},
			"all of them take longer":          {clients("1000", servers("500", "500", "500")), ""},
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				err := ConsistentTimeouts(c.config)
				if c.refused == "" {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(err).To(HaveField("Reason", v1alpha1.ReasonOptionRefused))
				g.Expect(err.Error()).To(ContainSubstring(c.refused))
			})
		}
	})
}

func TestTheDocumentationNamesEveryOptionThatAUserMayNotSet(t *testing.T) {
	content, err := os.ReadFile("../../../../docs/beegfs-options.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, version := range []string{"7.4.0", "7.4.7", "8.0.1", "8.3.1"} {
		for _, daemon := range []string{"mgmtd", "meta", "storage", "client"} {
			for name, o := range optionsOf(daemon, version) {
				if o.operators || o.field != "" {
					NewWithT(t).Expect(string(content)).To(ContainSubstring("`"+name+"`"), "beegfs-%s %s", daemon, version)
				}
				if o.field != "" {
					NewWithT(t).Expect(string(content)).To(ContainSubstring("`" + o.field + "`"))
				}
			}
		}
	}
}
