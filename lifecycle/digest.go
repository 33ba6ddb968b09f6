package lifecycle

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
)

// Digest identifies a value by its JSON, in at most 13 characters that fit into a label or a
// name. It never changes for the same JSON, because applications compare it with what they
// wrote on pods long ago. It panics for a value without JSON, such as a channel or NaN,
// which no API type holds.
func Digest(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("a %T is not JSON: %v", value, err))
	}
	sum := fnv.New64a()
	_, _ = sum.Write(raw)
	return strconv.FormatUint(sum.Sum64(), 36)
}
