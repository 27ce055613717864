package exchange_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/spec"
)

func TestRecordedNumbersAreFormattedAsRangesAndParsed(t *testing.T) {
	g := NewWithT(t)
	var many []int32
	for n := int32(24000); n > 0; n-- {
		many = append(many, n)
	}
	known := exchange.Known(map[v1alpha1.Role][]int32{v1alpha1.RoleMetadata: {7, 1, 2}, v1alpha1.RoleStorage: nil},
		map[v1alpha1.Role][]int32{v1alpha1.RoleStorage: many})
	bytes, err := json.Marshal(known)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(bytes)).To(Equal(`{"servers":{"Metadata":"1-2,7","Storage":""},"targets":{"Storage":"1-24000"}}`))
	state, err := exchange.Said(known)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Servers).To(Equal([]backend.Server{
		{Role: v1alpha1.RoleMetadata, ID: 1}, {Role: v1alpha1.RoleMetadata, ID: 2}, {Role: v1alpha1.RoleMetadata, ID: 7},
	}))
	g.Expect(state.Targets).To(HaveLen(24000))
	g.Expect(exchange.Said(nil)).To(BeZero())
	for _, wrong := range []string{"x", "1-", "3-1", "0", "1-2147483647", "1,,2"} {
		_, err := exchange.Said(&spec.Known{Targets: map[string]string{"Storage": wrong}})
		g.Expect(err).To(MatchError(ContainSubstring("is no list of numbers")), wrong)
	}
}
