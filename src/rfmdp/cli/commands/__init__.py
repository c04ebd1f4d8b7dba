"""The commands of `rfmdp`: each only translates its words into calls of the library."""
