package exchange

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
	"parallelfs.dev/operator/internal/backend"
)

// Answer is the response of a filesystem's probe to one question. It is encoded as CBOR (RFC 8949), with its signature in SignatureHeader.
// For a filesystem of 24,000 targets it has megabytes, and JSON takes three times as long to read. The probe queries the filesystem after
// it received the question, so an answer shows nothing that happened after the question was sent.
type Answer struct {
	// Nonce is the nonce of the question.
	Nonce string `json:"nonce"`
	// FileSystemUID is the uid of the FileSystem that the probe belongs to.
	FileSystemUID string `json:"fileSystemUID"`
	// State is the state that the filesystem reports, nil if it did not answer. Problem is then the reason, as a sentence.
	State   *backend.State `json:"state,omitempty"`
	Problem string         `json:"problem,omitempty"`
}

// mostListed bounds the length of each list in an answer. The default of the CBOR library is 131,072.
const mostListed = 1 << 20

// decoding decodes answers.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{MaxArrayElements: mostListed}.DecMode()
	if err != nil {
		panic(err) // the options above are invalid
	}
	return mode
}()

// AnswerType is the media type of an Answer.
const AnswerType = "application/cbor"

const (
	// SignatureHeader holds the HMAC-SHA256 (RFC 2104) of the whole body with the key in ProbeSecretName, in hexadecimal. The body contains
	// the nonce and the uid of the FileSystem, so the signature covers both.
	SignatureHeader = "Parallelfs-Signature"
	// QuestionHeader holds the HMAC-SHA256 of a question, in hexadecimal: see SignQuestion.
	QuestionHeader = "Parallelfs-Question"
	// NonceParameter of the URL is the nonce of a question.
	NonceParameter = "nonce"
	// ProbeKey is the key of the Secret ProbeSecretName that holds the signing key of answers.
	ProbeKey = "key"
)

// IsNonce reports whether a text can be the nonce of a question: 1 to 64 letters and digits. The program that asks must choose one that
// can't be guessed.
func IsNonce(text string) bool { return nonces.MatchString(text) }

var nonces = regexp.MustCompile(`^[0-9A-Za-z]{1,64}$`)

// The reasons to reject an answer.
var (
	// ErrUnsigned: the sender of the answer does not have the filesystem's secret.
	ErrUnsigned = errors.New("the answer is not signed with this filesystem's secret")
	// ErrReplayed: the answer belongs to another question.
	ErrReplayed = errors.New("the answer was given to another question")
	// ErrOtherFileSystem: the probe belongs to another FileSystem. Answer.FileSystemUID is the uid of that FileSystem.
	ErrOtherFileSystem = errors.New("the answer is that of another FileSystem")
)

// Sign returns the encoded answer and the value of SignatureHeader. Without a key it returns an error.
func (a Answer) Sign(key []byte) (body []byte, signature string, err error) {
	if len(key) == 0 {
		return nil, "", errors.New("the key that answers are signed with is empty")
	}
	if body, err = cbor.Marshal(a); err != nil {
		return nil, "", fmt.Errorf("encode the answer: %w", err)
	}
	return body, hex.EncodeToString(mac(key, body)), nil
}

// SignQuestion returns the value of QuestionHeader for the question with this nonce: its HMAC-SHA256 with the signing key of answers.
// Probes reserve capacity for signed questions.
func SignQuestion(key []byte, nonce string) string {
	return hex.EncodeToString(mac(key, question(nonce)))
}

// IsSignedQuestion reports whether a signature belongs to the question with this nonce.
func IsSignedQuestion(key []byte, nonce, signature string) bool {
	signed, err := hex.DecodeString(signature)
	return err == nil && len(key) > 0 && hmac.Equal(signed, mac(key, question(nonce)))
}

// question returns the signed text of a question. It can't be mistaken for an answer, because CBOR begins a map with 0xa0 to 0xbf.
func question(nonce string) []byte { return []byte("question " + nonce) }

// ReadAnswer decodes the answer to the question with this nonce, for the filesystem with this key and uid. It checks the signature before
// it decodes anything. The error is ErrUnsigned, ErrReplayed, ErrOtherFileSystem (which comes with the answer), or a CBOR error.
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

// ProbeSecretName names the Secret that holds Input.ProbeKey under ProbeKey. It is separate from the Secret of the daemons, which a user
// may provide and which other nodes can read.
func ProbeSecretName(fs *v1alpha1.FileSystem) string { return backend.ChildName(fs, "probe") }

// ProbeSecret returns that Secret, which is one of the objects of every backend.
func ProbeSecret(in backend.Input) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: ProbeSecretName(in.FileSystem), Namespace: in.FileSystem.Namespace},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{ProbeKey: []byte(in.ProbeKey)},
	}
}
