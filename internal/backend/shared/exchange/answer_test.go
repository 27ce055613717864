package exchange_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
)

func TestAnAnswerCountsOnlyWhenItIsSignedForThisQuestionAndThisFileSystem(t *testing.T) {
	const key, nonce, uid = "correct-horse", "N2", "7"
	state := &backend.State{Version: "4.57.5", Targets: []backend.Target{{Path: "/data/a", Removing: true, Removable: true}}}
	sign := func(a exchange.Answer, key string) (string, string) {
		body, signature, err := a.Sign([]byte(key))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return string(body), signature
	}
	body, signature := sign(exchange.Answer{Nonce: nonce, FileSystemUID: uid, State: state}, key)
	earlier, signedEarlier := sign(exchange.Answer{Nonce: "N1", FileSystemUID: uid, State: state}, key)
	others, signedOthers := sign(exchange.Answer{Nonce: nonce, FileSystemUID: "8", State: state}, key)
	_, guessed := sign(exchange.Answer{Nonce: nonce, FileSystemUID: uid, State: state}, "guessed")
	_, cut, _ := strings.Cut(signature, signature[:2])
	for name, c := range map[string]struct {
		body, signature, key string
		is                   error
	}{
		"it is":                                          {body, signature, key, nil},
		"it has no signature":                            {body, "", key, exchange.ErrUnsigned},
		"its signature is no hexadecimal":                {body, "?" + signature[1:], key, exchange.ErrUnsigned},
		"its signature is cut off":                       {body, cut, key, exchange.ErrUnsigned},
		"it is signed with a guessed key":                {body, guessed, key, exchange.ErrUnsigned},
		"what it says was changed":                       {strings.Replace(body, "/data/a", "/data/b", 1), signature, key, exchange.ErrUnsigned},
		"its nonce was changed":                          {strings.Replace(earlier, "N1", nonce, 1), signedEarlier, key, exchange.ErrUnsigned},
		"its uid was changed":                            {strings.Replace(others, "\x618", "\x617", 1), signedOthers, key, exchange.ErrUnsigned},
		"it was given to another question":               {earlier, signedEarlier, key, exchange.ErrReplayed},
		"it is that of another FileSystem":               {others, signedOthers, key, exchange.ErrOtherFileSystem},
		"nobody has a key, so that everybody could sign": {body, signature, "", exchange.ErrUnsigned},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer, err := exchange.ReadAnswer([]byte(c.body), c.signature, []byte(c.key), nonce, uid)
			if c.is != nil {
				g.Expect(err).To(MatchError(c.is))
				g.Expect(answer.State).To(BeNil())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.State).To(Equal(state))
		})
	}
	_, _, err := exchange.Answer{Nonce: nonce, FileSystemUID: uid, State: state}.Sign(nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is empty")))
}

func TestANonceIsShortAndPlain(t *testing.T) {
	g := NewWithT(t)
	g.Expect(exchange.IsNonce("ABCDEFGHIJKLMNOPQRSTUVWXYZ")).To(BeTrue())
	for _, text := range []string{"", "a b", "a\"", "ä", "a\n", strings.Repeat("a", 65)} {
		g.Expect(exchange.IsNonce(text)).To(BeFalse(), text)
	}
}
