"""Every C++ block in README.md and docs/ is a marked region of a program in examples/, letter for letter.

A region lies between `// [name]` and `// [/name]`; its indentation does not count.
"""

import re
import sys
import textwrap
from pathlib import Path

root = Path(sys.argv[1])
regions = {}
for source in sorted((root / "examples").glob("*.cpp")):
    for name, text in re.findall(
        r"^ *// \[(\w+)\]\n(.*?)^ *// \[/\1\]$", source.read_text(), re.MULTILINE | re.DOTALL
    ):
        regions[textwrap.dedent(text).strip()] = f"{source.name} [{name}]"

found = 0
strangers = []
for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
    text = page.read_text()
    for block in re.finditer(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        found += 1
        if block[1].strip() not in regions:
            line = text.count("\n", 0, block.start()) + 1
            strangers.append(f"{page.relative_to(root)}:{line}: this block is no region of examples/*.cpp")
print(*strangers, sep="\n")
print(f"snippets: {found} blocks, {len(regions)} regions")
sys.exit(1 if strangers or not found or not regions else 0)
