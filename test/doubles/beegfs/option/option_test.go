package option_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
)

func TestAValueMustBeOfItsOptionsType(t *testing.T) {
	for sentence, row := range map[string]struct {
		argument string
		refused  bool
	}{
		"a number":                         {"tuneNumWorkers=16", false},
		"a negative number":                {"tuneListenerPrioShift=-1", false},
		"a word for a number":              {"tuneNumWorkers=many", true},
		"nothing for a number":             {"tuneNumWorkers=", true},
		"a switch":                         {"connUseRDMA=false", false},
		"a switch without a value is on":   {"connUseRDMA", false},
		"a word for a switch":              {"connUseRDMA=perhaps", true},
		"a port":                           {"connMetaPortTCP=8005", false},
		"the port 0":                       {"connMetaPortTCP=0", true},
		"a port above all":                 {"connMetaPortTCP=65536", true},
		"a size":                           {"tuneWorkerBufSize=4m", false},
		"a size with a unit that is none":  {"tuneWorkerBufSize=4MiB", true},
		"three timeouts":                   {"connMessagingTimeouts=1,2,3", false},
		"two timeouts":                     {"connMessagingTimeouts=1,2", true},
		"no NUMA zone":                     {"tuneBindToNumaZone=", false},
		"a NUMA zone":                      {"tuneBindToNumaZone=0", false},
		"an option of the storage servers": {"storeStorageDirectory=/x", true},
		"an option of 8":                   {"connMetaPort=8005", true},
		"the file of the options":          {"cfgFile=", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := option.Daemon(option.Meta(7), []string{row.argument})
			NewWithT(t).Expect(err != nil).To(Equal(row.refused), "%v", err)
		})
	}
}

func TestArgumentsWinOverTheFile(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "file.conf")
	g.Expect(os.WriteFile(file, []byte("# a remark\n\n logLevel = 4 \ntuneNumWorkers=8\n"), 0o600)).To(Succeed())
	values, err := option.Daemon(option.Storage(8), []string{"cfgFile=" + file, "tuneNumWorkers=12"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(values.Int("logLevel", 0)).To(Equal(4))
	g.Expect(values.Int("tuneNumWorkers", 0)).To(Equal(12))
}

func TestSizesAndTimesAreReadAsBeeGFSDoes(t *testing.T) {
	g := NewWithT(t)
	for text, bytes := range map[string]uint64{"0": 0, "512k": 512 << 10, "10G": 10 << 30, "1T": 1 << 40, "7": 7} {
		g.Expect(option.Bytes(text)).To(Equal(bytes), text)
	}
	for text, number := range map[string]uint64{"10Gi": 10 << 30, "10GiB": 10 << 30, "10M": 10_000_000, "3": 3, "4 kiB": 4096} {
		g.Expect(option.Units(text)).To(Equal(number), text)
	}
	for text, duration := range map[string]time.Duration{"180s": 3 * time.Minute, "30m": 30 * time.Minute, "90": 90 * time.Second} {
		g.Expect(option.ParseDuration(text)).To(Equal(duration), text)
	}
	for _, text := range []string{"", "x", "Gi", "1.5Gi", "-1"} {
		_, err := option.Units(text)
		g.Expect(err).To(HaveOccurred(), text)
	}
	for _, text := range []string{"", "s", "1w", "-1s"} {
		_, err := option.ParseDuration(text)
		g.Expect(err).To(HaveOccurred(), text)
	}
}

func TestTwoSecretsAreOneOnlyWhenTheyAreTheSameToTheLineEnd(t *testing.T) {
	g := NewWithT(t)
	g.Expect(option.Hash([]byte("secret"))).To(Equal(option.Hash([]byte("secret"))))
	g.Expect(option.Hash([]byte("secret\n"))).NotTo(Equal(option.Hash([]byte("secret"))))
}
