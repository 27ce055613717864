package backend

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"github.com/fxamacker/cbor/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Answer is what the probe of a filesystem answers to one question. It is served as CBOR (RFC 8949), with its signature in SignatureHeader:
// one of 24,000 targets has megabytes, and JSON takes three times as long to read. Its probe asks the filesystem after it got the question,
// so an answer says nothing of what was done after the question was sent.
type Answer struct {
	// Nonce is that of the question.
	Nonce string `json:"nonce"`
	// FileSystemUID is the uid of the FileSystem whose probe answers.
	FileSystemUID string `json:"fileSystemUID"`
	// State is what the filesystem says of itself, nil when it did not answer; Problem says why not, in a sentence.
	State   *State `json:"state,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// mostListed bounds how many of one kind an answer lists. By default, CBOR takes 131,072.
const mostListed = 1 << 20

// decoding reads answers.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{MaxArrayElements: mostListed}.DecMode()
	if err != nil {
		panic(err) // the options above are wrong
	}
	return mode
}()

// AnswerType is the media type of an Answer.
const AnswerType = "application/cbor"

const (
	// SignatureHeader holds the HMAC-SHA256 (RFC 2104) of the whole body with the key in ProbeSecretName, in hexadecimal. The body names
	// the question and the FileSystem, so both are signed with it.
	SignatureHeader = "Parallelfs-Signature"
	// QuestionHeader holds the HMAC-SHA256 of a question, in hexadecimal: see SignQuestion.
	QuestionHeader = "Parallelfs-Question"
	// NonceParameter of the URL is the nonce of a question.
	NonceParameter = "nonce"
	// ProbeKey is the key of the Secret ProbeSecretName that holds what answers are signed with.
	ProbeKey = "key"
)

// IsNonce is true for what can be the nonce of a question: 1 to 64 letters and digits. The asker has to choose one that nobody can guess.
func IsNonce(text string) bool { return nonces.MatchString(text) }

var nonces = regexp.MustCompile(`^[0-9A-Za-z]{1,64}$`)

// The ways in which an answer is none to the question that was asked.
var (
	// ErrUnsigned means that who answers does not know the filesystem's secret.
	ErrUnsigned = errors.New("the answer is not signed with this filesystem's secret")
	// ErrReplayed means that the answer was given to another question.
	ErrReplayed = errors.New("the answer was given to another question")
	// ErrOtherFileSystem means that the probe is that of another FileSystem, whose uid Answer.FileSystemUID is.
	ErrOtherFileSystem = errors.New("the answer is that of another FileSystem")
)

// Sign returns the answer as it is sent: its body, and what SignatureHeader holds. Without a key it is an error.
func (a Answer) Sign(key []byte) (body []byte, signature string, err error) {
	if len(key) == 0 {
		return nil, "", errors.New("the key that answers are signed with is empty")
	}
	if body, err = cbor.Marshal(a); err != nil {
		return nil, "", fmt.Errorf("encode the answer: %w", err)
	}
	return body, hex.EncodeToString(mac(key, body)), nil
}

// SignQuestion returns what QuestionHeader holds for the question with this nonce: its HMAC-SHA256 with the key that answers are signed
// with. Probes keep places for signed questions.
func SignQuestion(key []byte, nonce string) string {
	return hex.EncodeToString(mac(key, question(nonce)))
}

// IsSignedQuestion is true when a signature is that of the question with this nonce.
func IsSignedQuestion(key []byte, nonce, signature string) bool {
	signed, err := hex.DecodeString(signature)
	return err == nil && len(key) > 0 && hmac.Equal(signed, mac(key, question(nonce)))
}

// question is what is signed of a question. No answer begins so: CBOR writes a map as 0xa0 to 0xbf.
func question(nonce string) []byte { return []byte("question " + nonce) }

// ReadAnswer is the answer to the question with this nonce to the filesystem with this key and uid. Nothing in the body is looked at
// before its signature is proven. The error is ErrUnsigned, ErrReplayed or ErrOtherFileSystem, of which the last comes with the answer, or
// says what is wrong with the CBOR.
func ReadAnswer(body []byte, signature string, key []byte, nonce, uid string) (Answer, error) {
	signed, err := hex.DecodeString(signature)
	if err != nil || len(key) == 0 || !hmac.Equal(signed, mac(key, body)) {
		return Answer{}, ErrUnsigned
	}
	var a Answer
	if err := decoding.Unmarshal(body, &a); err != nil {
		return Answer{}, fmt.Errorf("decode the answer: %w", err)
	}
	switch {
	case a.Nonce != nonce:
		return Answer{}, ErrReplayed
	case a.FileSystemUID != uid:
		return Answer{FileSystemUID: a.FileSystemUID}, ErrOtherFileSystem
	}
	return a, nil
}

func mac(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return h.Sum(nil)
}

// ProbeSecretName names the Secret that holds Input.ProbeKey under ProbeKey. It is no part of the Secret that daemons share, which a user
// may bring, and which other nodes know.
func ProbeSecretName(fs *v1alpha1.FileSystem) string { return ChildName(fs, "probe") }

// ProbeSecret is that Secret, one of the Objects of every backend.
func ProbeSecret(in Input) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: ProbeSecretName(in.FileSystem), Namespace: in.FileSystem.Namespace},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{ProbeKey: []byte(in.ProbeKey)},
	}
}
