package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// ModelDigest is the hex SHA-256 of everything in the archive that a program may depend on: names, sizes and CRC-32 of all entries, and the bytes of
// all but the weights', which a program never depends on. Their CRC-32 are in it all the same, so that another checkpoint is another model.
// The name of the root folder is not. With every set the weights' bytes are read too, and compared with their CRC-32.
func (a *Archive) ModelDigest(every bool) (string, error) {
	h := sha256.New()
	for _, name := range a.dir.names {
		f := a.dir.entries[name]
		fmt.Fprintf(h, "%q %d %08x\n", name, f.UncompressedSize64, f.CRC32)
		if a.isWeights(name) && !every {
			continue
		}
		data, err := a.Entry(name)
		if err != nil {
			return "", err
		}
		if !a.isWeights(name) {
			h.Write(data)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// isWeights says that an entry holds learned tensors: a storage, or all of them in a file of torch.save.
func (a *Archive) isWeights(name string) bool {
	if a.graph == flatGraph {
		return name == flatWeights
	}
	return strings.HasPrefix(name, "data/weights/") && !strings.HasSuffix(name, ".json")
}
