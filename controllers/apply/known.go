package apply

import (
	"crypto/sha256"
	"sync"
)

// known remembers children, each as it was last. The zero value is ready.
type known struct {
	mutex sync.Mutex
	as    map[childKey][sha256.Size]byte
}

// has is true for a child that was last as it is now.
func (k *known) has(key childKey, as [sha256.Size]byte) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	last, ok := k.as[key]
	return ok && last == as
}

// mostKnown bounds what is remembered: about 10 MB. What is forgotten is compared once more.
const mostKnown = 1 << 17

func (k *known) add(key childKey, as [sha256.Size]byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.as == nil || len(k.as) >= mostKnown {
		k.as = map[childKey][sha256.Size]byte{}
	}
	k.as[key] = as
}
