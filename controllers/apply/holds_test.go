package apply

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestHolds(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		live, wanted any
		holds        bool
	}{
		"what the API server adds is not ours":             {object{"a": "1", "defaulted": "x"}, object{"a": "1"}, true},
		"a changed value is drift":                         {object{"a": "2"}, object{"a": "1"}, false},
		"a missing value is drift":                         {object{}, object{"a": "1"}, false},
		"an item that somebody added to our list is drift": {object{"l": []any{"a", "b"}}, object{"l": []any{"a"}}, false},
		"items of a list may have defaults":                {object{"l": []any{object{"n": "a", "p": "TCP"}}}, object{"l": []any{object{"n": "a"}}}, true},
		"a variable that a webhook added is not ours": {
			object{"env": []any{object{"name": "PROXY", "value": "x"}, object{"name": "A", "value": "1"}}}, object{"env": []any{object{"name": "A", "value": "1"}}}, true},
		"a container that a webhook added is not ours": {
			object{"containers": []any{object{"name": "a"}, object{"name": "sidecar"}}}, object{"containers": []any{object{"name": "a"}}}, true},
		"a variable of ours that somebody changed is drift": {
			object{"env": []any{object{"name": "A", "value": "2"}}}, object{"env": []any{object{"name": "A", "value": "1"}}}, false},
		"a variable of ours that somebody removed is drift": {
			object{"env": []any{object{"name": "B", "value": "1"}}}, object{"env": []any{object{"name": "A", "value": "1"}}}, false},
		"our order of what has keys counts": {
			object{"env": []any{object{"name": "B"}, object{"name": "A"}}}, object{"env": []any{object{"name": "A"}, object{"name": "B"}}}, false},
		"an argument that somebody added is drift": {
			object{"args": []any{"--a", "--b"}}, object{"args": []any{"--a"}}, false},
		"the order of a list counts":                          {[]any{"a", "b"}, []any{"b", "a"}, false},
		"a quantity may be written in another way":            {object{"cpu": "500m"}, object{"cpu": "0.5"}, true},
		"another quantity is drift":                           {object{"cpu": "500m"}, object{"cpu": "0.6"}, false},
		"numbers are compared as numbers":                     {object{"p": int64(9421)}, object{"p": int64(9421)}, true},
		"kind and apiVersion are missing in what a cache has": {object{"spec": "x"}, object{"spec": "x", "kind": "Job", "apiVersion": "batch/v1"}, true},
		"an empty map is held by none":                        {object{}, object{"m": object{}}, true},
		"an empty map is not held by a text":                  {object{"m": "x"}, object{"m": object{}}, false},
		"a map is not held by none":                           {object{}, object{"m": object{"a": "1"}}, false},
		"an empty list is held by none":                       {object{}, object{"l": []any{}}, true},
		"an empty list is not held by a text":                 {object{"l": "x"}, object{"l": []any{}}, false},
		"a list is not held by none":                          {object{}, object{"l": []any{"a"}}, false},
		"a text among items with keys is not ours":            {object{"env": []any{"A", object{"name": "B"}}}, object{"env": []any{object{}}}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(holds(c.live, c.wanted)).To(Equal(c.holds))
		})
	}
}

func TestAKindThatACacheDoesNotHaveHidesNoDrift(t *testing.T) {
	// The order of the fields changes with each look at them.
	for range 64 {
		wanted := map[string]any{"kind": "Job", "apiVersion": "batch/v1", "spec": "x"}
		NewWithT(t).Expect(holds(map[string]any{"spec": "y"}, wanted)).To(BeFalse())
	}
}
