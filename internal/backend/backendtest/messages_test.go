package backendtest

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAnItemThatAMessageListsTwiceIsFound(t *testing.T) {
	for message, found := range map[string][]string{
		"2 servers (chunkserver on node w2, chunkserver on node w2) are back":   {"chunkserver on node w2"},
		"2 targets are offline: n1:/a (it is starting), n1:/b (it is starting)": nil,
		"pool ssd is full; pool ssd is full":                                    {"pool ssd is full"},
	} {
		NewWithT(t).Expect(repeated(message)).To(Equal(found), message)
	}
}
