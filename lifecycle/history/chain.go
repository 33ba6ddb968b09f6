package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// plain is an Entry without its JSON methods.
type plain Entry

// UnmarshalJSON implements json.Unmarshaler. It keeps the stored bytes, because the digest
// covers them, including fields that this operator does not know.
func (e *Entry) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, (*plain)(e)); err != nil {
		return err
	}
	var stored bytes.Buffer
	if err := json.Compact(&stored, raw); err != nil {
		return err
	}
	e.raw = stored.Bytes()
	return nil
}

// MarshalJSON implements json.Marshaler. It returns the stored bytes unchanged.
func (e Entry) MarshalJSON() ([]byte, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	return json.Marshal(plain(e))
}

// stored returns the stored bytes of the entry; nil if it cannot be encoded.
func (e Entry) stored() []byte {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	return raw
}

// follows reports whether the entry has the digest of the other one.
func (e Entry) follows(before Entry) bool {
	return e.Previous == digest(before.stored()) || e.Previous == digest(before.storedFirst())
}

// storedFirst returns the entry in the encoding of the operator's first release. A later
// release rewrote those logs without changing their digests.
func (e Entry) storedFirst() []byte {
	type step struct {
		Name, Target string
		Class        lifecycle.Class
		Intent       lifecycle.Intent
		Reason       string
		Message      string
		Cause        lifecycle.Cause
		Args         map[string]string
	}
	raw, err := json.Marshal(struct {
		At         time.Time     `json:"at"`
		Generation int64         `json:"generation"`
		Step       step          `json:"step"`
		Result     Result        `json:"result"`
		Message    string        `json:"message,omitempty"`
		Duration   time.Duration `json:"duration"`
		Operator   string        `json:"operator"`
		Previous   string        `json:"previous"`
	}{e.At, e.Generation, step(e.Step), e.Result, e.Message, e.Duration, e.Operator, e.Previous})
	if err != nil {
		return nil
	}
	return raw
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
