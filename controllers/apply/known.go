package apply

import (
	"crypto/sha256"
	"sync"
)

// known remembers the last content of each child. The zero value is ready.
type known struct {
	mutex sync.Mutex
	as    map[childKey][sha256.Size]byte
}

// has is true if the child's content equals the last one.
func (k *known) has(key childKey, as [sha256.Size]byte) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	last, ok := k.as[key]
	return ok && last == as
}

// mostKnown bounds the number of remembered children, which take about 10 MB. A forgotten child is compared once more.
const mostKnown = 1 << 17

func (k *known) add(key childKey, as [sha256.Size]byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.as == nil || len(k.as) >= mostKnown {
		k.as = map[childKey][sha256.Size]byte{}
	}
	k.as[key] = as
}
