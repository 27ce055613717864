package kernel

import (
	"testing"

	. "github.com/onsi/gomega"
)

// longLog returns a log of several chunks with a canceled record.
func longLog() *Log {
	l := &Log{}
	for range 40 {
		l.with(event("attach", "device", "pfs-OST0000-osc", "type", "osc", "UUID", "pfs-clilov_UUID"),
			event("add_uuid", "nid", "192.168.77.1@tcp(0x20000c0a84d01)", "node", "192.168.77.1@tcp"),
			event("conf_param", "device", "pfs-OST0000-osc", "parameter", "osc.active=0"))
	}
	first := true
	l.cancel(func(r Record) bool {
		is := first && r.Event == "conf_param"
		first = first && !is
		return is
	})
	return l
}

func TestTheFileOfALogHasAllOfItsRecords(t *testing.T) {
	g, l := NewWithT(t), longLog()
	file := l.File()
	g.Expect(len(file)).To(Equal(chunk+l.Bytes), "each record is as long as it is counted")
	head, records, wrong, err := ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(wrong).To(BeEmpty())
	g.Expect(head.Last).To(Equal(len(l.Records)))
	again := logOf(records)
	g.Expect(again.Bytes).To(Equal(l.Bytes))
	for i := range l.Records {
		g.Expect(again.Records[i].String()).To(Equal(l.Records[i].String()))
		g.Expect(again.Records[i].Cancelled).To(Equal(l.Records[i].Cancelled), l.Records[i].String())
		g.Expect(again.Records[i].Padding).To(Equal(l.Records[i].Padding))
	}
}

func TestTheFileOfALogThatIsNotWholeIsCalledWrong(t *testing.T) {
	g, file := NewWithT(t), longLog().File()
	for _, end := range []int{chunk + 10, chunk + 100, 2*chunk - 4, len(file) - 1} {
		_, _, wrong, err := ReadFile(file[:end])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(wrong).NotTo(BeEmpty(), "%d bytes", end)
	}
	_, _, _, err := ReadFile(file[:100])
	g.Expect(err).To(MatchError(ErrNoLog))
	_, _, _, err = ReadFile(make([]byte, 2*chunk))
	g.Expect(err).To(MatchError(ErrNoLog))
}
