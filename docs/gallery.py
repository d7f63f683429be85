def page(folder):
    return "# Gallery\n"
