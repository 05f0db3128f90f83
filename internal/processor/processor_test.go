package processor

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe(t *testing.T) {
	info := "processor : 0\nmodel name : Some CPU\nflags : fpu avx\ncpu MHz : 1000\n\nprocessor : 1\nflags : other\n"
	name := describe([]byte(info))
	require.True(t, strings.HasPrefix(name, "Some CPU "), name)
	require.Equal(t, name, describe([]byte(strings.Replace(info, "1000", "2000", 1))))
	require.Equal(t, name, describe([]byte(strings.Replace(info, "other", "third", 1))), "the first processor names the machine's")
	require.NotEqual(t, name, describe([]byte(strings.Replace(info, "avx", "avx2", 1))))
	require.Equal(t, Here(), Here())
}

func TestOf(t *testing.T) {
	field := func(tag byte, s string) string { return string(binary.AppendUvarint([]byte{tag}, uint64(len(s)))) + s }
	long := "+avx,+avx2,-sse4a,+64bit" + strings.Repeat(",+x", 60) // a length of two bytes
	for _, c := range []struct{ data, processor, first string }{
		{"noise\x00" + field(0x0a, "x86_64-unknown-linux-gnu") + field(0x12, "znver4") + field(0x1a, "+avx,+avx2,-sse4a,+64bit") + "zuRO",
			"x86_64-unknown-linux-gnu znver4", "+64bit"},
		{field(0x0a, "t-u-v") + field(0x12, "znver4") + field(0x1a, long) + "abc", "t-u-v znver4", "+64bit"}, // what follows looks like more of the list
		{field(0x12, "znver4") + field(0x1a, long), "znver4", "+64bit"},
		{field(0x1a, long), "", "+64bit"},
		{"+avx,+avx2,-sse4a,+64bit", "", ""}, // no field
		{field(0x22, long), "", ""},
		{"", "", ""},
	} {
		name, features := Of([]byte(c.data))
		require.Equal(t, c.processor, name, "%q", c.data)
		if c.first == "" {
			require.Empty(t, features, "%q", c.data)
		} else {
			require.Equal(t, c.first, features[0])
		}
	}
}
