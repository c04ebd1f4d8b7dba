"""The PRISM language: models and properties as text, their trees, and their static checks.

The parser (and with it lark) is loaded only when `parse` is imported.
"""
